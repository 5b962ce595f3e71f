package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
)

func (s *session) tablesCommand() *cobra.Command {
	var f format
	c := &cobra.Command{Use: "tables", Short: "List the tables", Args: args(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.withStore(reads, func(db *minikudu.DB) error {
				l := newListing("table string, rows int64, columns int32, key string, unique bool")
				for _, t := range db.Tables() {
					sch := t.Schema()
					l.add(t.Name(), t.Rows(), visibleColumns(sch), sqltext.FormatNames(namedKey(sch)), sch.AutoIncrement() < 0)
				}
				return s.print(f, l)
			})
		}}
	f.register(c)
	return c
}

// visibleColumns returns the number of columns but the generated one.
func visibleColumns(sch *schema.Schema) int {
	if sch.AutoIncrement() >= 0 {
		return sch.Len() - 1
	}
	return sch.Len()
}

// namedKey returns the key columns but the generated one.
func namedKey(sch *schema.Schema) []string {
	key := sch.KeyNames()
	if i := sch.AutoIncrement(); i >= 0 {
		return key[:i]
	}
	return key
}

func (s *session) describeCommand() *cobra.Command {
	var f format
	c := &cobra.Command{Use: "describe TABLE", Short: "Print the columns of a table",
		Long: "Print the columns of a table and how they are stored, and below them, but not as CSV, how\nlong the table's history is kept.",
		Args: args(1, 1, "the name of a table"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.withTable(reads, args[0], func(_ *minikudu.DB, t *minikudu.Table) error {
				if s.json {
					return s.printJSON(describe(t))
				}
				return s.printDescription(f, t)
			})
		}}
	f.register(c)
	return c
}

// description is describe's result as JSON.
type description struct {
	Table   string              `json:"table"`
	Key     []string            `json:"key"`
	Unique  bool                `json:"unique"`
	History string              `json:"history"` // a duration as --history takes it
	Columns []columnDescription `json:"columns"`
}

type columnDescription struct {
	Name        string  `json:"name"`
	Type        string  `json:"type"`
	Nullable    bool    `json:"nullable"`
	Key         int     `json:"key,omitempty"` // place in the key, from 1
	Default     *string `json:"default,omitempty"`
	Encoding    string  `json:"encoding"`
	Compression string  `json:"compression"`
	Page        int     `json:"page"`
}

const defaultPage = 256 << 10

func describe(t *minikudu.Table) description {
	sch := t.Schema()
	d := description{Table: t.Name(), Key: sch.KeyNames(), Unique: sch.AutoIncrement() < 0, History: formatHistory(t)}
	for i := range sch.Len() {
		c := sch.Column(i)
		cd := columnDescription{Name: c.Name, Type: c.TypeString(), Nullable: c.Nullable, Page: c.BlockSize}
		cd.Encoding, cd.Compression = stored(t, c)
		if cd.Page == 0 {
			cd.Page = defaultPage
		}
		if i < sch.NumKey() {
			cd.Key = i + 1
		}
		if !c.Default.IsNull() {
			text := string(c.Format(nil, c.Default))
			cd.Default = &text
		}
		d.Columns = append(d.Columns, cd)
	}
	return d
}

// stored returns how a column is written: its own encoding and codec, or "auto" and
// "default" where each page gets those that suit it.
func stored(t *minikudu.Table, c *schema.Column) (encoding, compression string) {
	e := c.Encoding.Resolve(c.Kind())
	if !t.KuduCompatible() && c.Encoding == schema.EncodingAuto && c.Compression == schema.CompressionDefault {
		return c.Encoding.String(), c.Compression.String()
	}
	return e.String(), c.Compression.Resolve(e).String()
}

func (s *session) printDescription(f format, t *minikudu.Table) error {
	l := newListing(`column string, type string, "null" bool, key int32 null, "default" string null,
		encoding string, compression string, page int32`)
	for _, c := range describe(t).Columns {
		var key any
		if c.Key > 0 {
			key = c.Key
		}
		l.add(c.Name, c.Type, c.Nullable, key, c.Default, c.Encoding, c.Compression, c.Page)
	}
	if err := s.print(f, l); err != nil || f.name != "table" {
		return err
	}
	_, err := fmt.Fprintf(s.out, "\nhistory: %s\n", formatHistory(t))
	return err
}

func (s *session) statsCommand() *cobra.Command {
	return &cobra.Command{Use: "stats TABLE", Short: "Print how a table is stored",
		Long: `Print the rows of a table, its files and their bytes, and how each column is stored. The
height is in how many files a key must be looked for, on average. Changes are updates and
deletes that are in files of their own until a compaction merges them. History is what was
deleted or replaced; what of it no read can need any more goes with a compaction.`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withTable(reads, args[0], func(_ *minikudu.DB, t *minikudu.Table) error {
				st, err := t.Stats(c.Context())
				if err != nil {
					return err
				}
				if s.json {
					return s.printJSON(statsJSON(t.Name(), st))
				}
				return s.printStats(st)
			})
		}}
}

// tableStats is stats' result as JSON.
type tableStats struct {
	Table       string        `json:"table"`
	Rows        int64         `json:"rows"`
	MemoryRows  int64         `json:"memory_rows"`
	MemoryBytes int64         `json:"memory_bytes"`
	RowSets     int           `json:"rowsets"`
	Height      float64       `json:"height"`
	Bytes       int64         `json:"bytes"`
	Changes     int64         `json:"change_bytes"`
	History     int64         `json:"history_bytes"`
	Expired     int64         `json:"expired_bytes"` // of history
	Columns     []columnStats `json:"columns"`
}

type columnStats struct {
	Name        string  `json:"name"`
	Type        string  `json:"type"`
	Encoding    string  `json:"encoding"`
	Compression string  `json:"compression"`
	Pages       int64   `json:"pages"`
	Bytes       int64   `json:"bytes"`
	PlainBytes  int64   `json:"plain_bytes"`
	Ratio       float64 `json:"ratio"`

	Encodings []pageEncoding `json:"encodings"` // of the pages
}

type pageEncoding struct {
	Encoding    string `json:"encoding"`
	Compression string `json:"compression"`
	Pages       int64  `json:"pages"`
}

func pageEncodings(c *minikudu.ColumnStats) []pageEncoding {
	out := []pageEncoding{}
	for _, e := range c.Encodings {
		out = append(out, pageEncoding{e.Encoding.String(), e.Compression.String(), e.Pages})
	}
	return out
}

// encodingNames lists the encodings of a column's pages, and the codecs.
func encodingNames(c *minikudu.ColumnStats) (encodings, codecs string) {
	if len(c.Encodings) == 0 {
		return c.Encoding.String(), c.Compression.String()
	}
	var e, k []string
	for _, p := range pageEncodings(c) {
		if !slices.Contains(e, p.Encoding) {
			e = append(e, p.Encoding)
		}
		if !slices.Contains(k, p.Compression) {
			k = append(k, p.Compression)
		}
	}
	return strings.Join(e, ", "), strings.Join(k, ", ")
}

func statsJSON(name string, st *minikudu.TableStats) tableStats {
	out := tableStats{Table: name, Rows: st.Rows, MemoryRows: st.MemoryRows, MemoryBytes: st.MemoryBytes, RowSets: st.RowSets,
		Height: st.Height, Bytes: st.Bytes, Changes: st.ChangeBytes, History: st.HistoryBytes, Expired: st.ExpiredBytes}
	for _, c := range st.Columns {
		out.Columns = append(out.Columns, columnStats{c.Name, c.Type, c.Encoding.String(), c.Compression.String(), c.Pages, c.Bytes,
			c.PlainBytes, c.Ratio, pageEncodings(&c)})
	}
	return out
}

func (s *session) printStats(st *minikudu.TableStats) error {
	fmt.Fprintf(s.out, "rows     %d (%d of them in memory)\n", st.Rows, st.MemoryRows)
	fmt.Fprintf(s.out, "rowsets  %d\n", st.RowSets)
	fmt.Fprintf(s.out, "height   %.2f\n", st.Height)
	size := func(n int64) string { return fmt.Sprintf("%d (%s)", n, humanize.IBytes(uint64(n))) }
	fmt.Fprintf(s.out, "bytes    %s\n", size(st.Bytes))
	fmt.Fprintf(s.out, "changes  %s\n", size(st.ChangeBytes))
	fmt.Fprintf(s.out, "history  %s, %s of it expired\n\n", size(st.HistoryBytes), size(st.ExpiredBytes))
	l := newListing("column string, type string, encoding string, compression string, pages int64, bytes int64, plain_bytes int64, ratio string")
	for _, c := range st.Columns {
		encodings, codecs := encodingNames(&c)
		l.add(c.Name, c.Type, encodings, codecs, c.Pages, c.Bytes, c.PlainBytes, fmt.Sprintf("%.2f", c.Ratio))
	}
	return s.print(format{"table"}, l)
}
