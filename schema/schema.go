package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ColumnID identifies a column for the life of its table. Ids are assigned by the
// engine from 0 upwards and never reused; stored data refers to columns by id.
type ColumnID int32

// AutoIncrementName is the reserved name of the generated key column of a table
// with a non-unique key.
const AutoIncrementName = "auto_incrementing_id"

// Column describes one column. The zero values of Encoding, Compression and
// BlockSize stand for the defaults.
type Column struct {
	Name      string
	Type      Type
	Precision uint8  // decimals: digits, 1..38
	Scale     uint8  // decimals: digits after the point, 0..Precision
	Length    uint16 // varchar: characters, 1..65535
	Nullable  bool
	Immutable bool // set by an insert, never changed by an update

	Encoding    Encoding
	Compression Compression
	BlockSize   int // target bytes of a page; 0 means 256 KiB, less than 512 means 512

	// Default is what an insert that omits the column stores (its write default);
	// Null when there is none. ReadDefault is what rows written before the column
	// existed return; it equals Default when the column is created.
	Default     Value
	ReadDefault Value

	// ID is assigned by the engine when the table is created.
	ID ColumnID
}

// Kind returns the physical kind of the column.
func (c *Column) Kind() Kind { return c.Type.Kind() }

// TypeString returns the type with its parameters: "decimal(10,2)", "varchar(20)".
func (c *Column) TypeString() string {
	switch {
	case c.Type.IsDecimal():
		return fmt.Sprintf("decimal(%d,%d)", c.Precision, c.Scale)
	case c.Type == Varchar:
		return fmt.Sprintf("varchar(%d)", c.Length)
	}
	return c.Type.String()
}

// Limits bound what a table may hold. The zero value of a field stands for its default.
type Limits struct {
	MaxColumns    int // columns of a table, default 300
	MaxNameBytes  int // bytes of a table or column name, default 256
	MaxCellBytes  int // bytes of one variable-length cell, default 65536
	MaxKeyBytes   int // bytes of an encoded primary key, default 16384
	MaxBlockBytes int // largest BlockSize, default 16 MiB
}

// WithDefaults returns the limits with the defaults filled in.
func (l Limits) WithDefaults() Limits {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&l.MaxColumns, 300)
	set(&l.MaxNameBytes, 256)
	set(&l.MaxCellBytes, 64<<10)
	set(&l.MaxKeyBytes, 16<<10)
	set(&l.MaxBlockBytes, 16<<20)
	return l
}

// Schema is an ordered list of columns of which the first NumKey are the primary
// key. It is immutable.
type Schema struct {
	cols   []Column
	numKey int
	byName map[string]int
	byID   map[ColumnID]int
}

// New returns a schema of the given columns. key names the primary key columns in
// key order; they may stand anywhere in cols and are moved to the front, the others
// keep their order. Ids are kept as they are. The result obeys limits (the zero
// Limits means the defaults); a violation is a [SchemaError].
func New(cols []Column, key []string, limits Limits) (*Schema, error) {
	ordered, err := keyFirst(cols, key)
	if err != nil {
		return nil, err
	}
	s := &Schema{cols: ordered, numKey: len(key), byName: map[string]int{}, byID: map[ColumnID]int{}}
	if err := s.index(limits.WithDefaults()); err != nil {
		return nil, err
	}
	return s, nil
}

func keyFirst(cols []Column, key []string) ([]Column, error) {
	if len(cols) == 0 {
		return nil, &SchemaError{Reason: "no columns"}
	}
	if len(key) == 0 {
		return nil, &SchemaError{Reason: "no primary key columns"}
	}
	at := make(map[string]int, len(cols))
	for i := range cols {
		if _, ok := at[cols[i].Name]; ok {
			return nil, &SchemaError{Column: cols[i].Name, Reason: "two columns have this name"}
		}
		at[cols[i].Name] = i
	}
	ordered := make([]Column, 0, len(cols))
	inKey := make(map[string]bool, len(key))
	for _, name := range key {
		i, ok := at[name]
		if !ok {
			return nil, &SchemaError{Column: name, Reason: "key column is not among the columns"}
		}
		if inKey[name] {
			return nil, &SchemaError{Column: name, Reason: "named twice in the key"}
		}
		inKey[name] = true
		ordered = append(ordered, cols[i])
	}
	for i := range cols {
		if !inKey[cols[i].Name] {
			ordered = append(ordered, cols[i])
		}
	}
	return ordered, nil
}

// index validates the columns and fills the look-up maps.
func (s *Schema) index(limits Limits) error {
	if len(s.cols) > limits.MaxColumns {
		return &SchemaError{Reason: fmt.Sprintf("%d columns, at most %d", len(s.cols), limits.MaxColumns)}
	}
	for i := range s.cols {
		c := &s.cols[i]
		if err := c.validate(i < s.numKey, limits); err != nil {
			return err
		}
		if c.Name == AutoIncrementName && (i != s.numKey-1 || c.Type != Int64) {
			return &SchemaError{Column: c.Name, Reason: "reserved for an int64 column that is last in the key"}
		}
		s.byName[c.Name] = i
		s.byID[c.ID] = i
	}
	return nil
}

func (c *Column) validate(key bool, limits Limits) error {
	fail := func(format string, args ...any) error {
		name := c.Name
		if len(name) > 80 {
			name = name[:80] + "…"
		}
		return &SchemaError{Column: name, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Name == "":
		return fail("empty name")
	case len(c.Name) > limits.MaxNameBytes:
		return fail("name of %d bytes, at most %d", len(c.Name), limits.MaxNameBytes)
	case !utf8.ValidString(c.Name) || strings.ContainsRune(c.Name, 0):
		return fail("name must be UTF-8 without NUL")
	case !c.Type.Valid():
		return fail("unknown type %d", c.Type)
	case key && !c.Type.KeyCapable():
		return fail("a %s column cannot be part of the key", c.Type)
	case key && c.Nullable:
		return fail("a key column cannot be nullable")
	case c.Type == Varchar && c.Length == 0:
		return fail("varchar length must be 1..65535")
	case c.BlockSize < 0 || c.BlockSize > limits.MaxBlockBytes:
		return fail("page size %d, at most %d", c.BlockSize, limits.MaxBlockBytes)
	case !c.Encoding.Supports(c.Kind()):
		return fail("encoding %s does not support type %s", c.Encoding, c.TypeString())
	}
	if _, ok := compressionNames[c.Compression]; !ok {
		return fail("unknown compression %d", c.Compression)
	}
	if c.Type.IsDecimal() {
		t, ok := DecimalType(int(c.Precision))
		if !ok || t != c.Type || c.Scale > c.Precision {
			return fail("precision %d and scale %d do not fit the type", c.Precision, c.Scale)
		}
	}
	for _, d := range []Value{c.Default, c.ReadDefault} {
		if d.IsNull() {
			continue
		}
		if reason := c.check(d, limits.MaxCellBytes); reason != "" {
			return fail("default of kind %s for %s: %s", d.Kind(), c.TypeString(), reason)
		}
	}
	return nil
}

// Len returns the number of columns.
func (s *Schema) Len() int { return len(s.cols) }

// NumKey returns the number of key columns.
func (s *Schema) NumKey() int { return s.numKey }

// Column returns column i. The caller must not change it.
func (s *Schema) Column(i int) *Column { return &s.cols[i] }

// Columns returns a copy of the columns.
func (s *Schema) Columns() []Column { return append([]Column(nil), s.cols...) }

// Find returns the index of the named column, -1 when there is none. Names are
// case-sensitive.
func (s *Schema) Find(name string) int {
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// FindID returns the index of the column with the given id, -1 when there is none.
func (s *Schema) FindID(id ColumnID) int {
	if i, ok := s.byID[id]; ok {
		return i
	}
	return -1
}

// AutoIncrement returns the index of the generated key column, -1 when there is none.
func (s *Schema) AutoIncrement() int {
	if i := s.numKey - 1; s.cols[i].Name == AutoIncrementName {
		return i
	}
	return -1
}

// KeyNames returns the names of the key columns in key order.
func (s *Schema) KeyNames() []string { return s.names(0, s.numKey) }

// Names returns the names of all columns in order.
func (s *Schema) Names() []string { return s.names(0, len(s.cols)) }

func (s *Schema) names(from, to int) []string {
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, s.cols[i].Name)
	}
	return out
}
