package csvio

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// maxBatchBytes is the bytes of text after which a batch ends early.
const maxBatchBytes = 16 << 20

// Rejected is a row that does not fit the columns. Err says why; a value that was
// refused is a [schema.ValueError].
type Rejected struct {
	Row  int64    // number of the row in the file, from 1, the header not counted
	Line int64    // line on which it starts, from 1
	Key  []string // text of the fields that Report names, shortened
	Err  error
}

// Batch is a run of rows. It is valid until the reader's next step.
type Batch struct {
	Columns  []*vector.Vector // in the order of the bound columns
	Rows     []int64          // the number in the file of each row, from 1
	Rejected []Rejected       // rows among and behind them that were left out
}

// Reader fills vectors from a file with a header row.
type Reader struct {
	scan   *Scanner
	header []string
	cols   []schema.Column
	fields []int // field of each column
	report []int // fields that tell rejected rows apart
	row    int64
	batch  Batch
}

// NewReader returns a reader over r and reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	s := NewScanner(r)
	header, err := readHeader(s)
	if err != nil {
		return nil, err
	}
	return &Reader{scan: s, header: header}, nil
}

// readHeader returns the names of the columns: column3 for a third one without name.
func readHeader(s *Scanner) ([]string, error) {
	fields, err := s.Next()
	if errors.Is(err, io.EOF) {
		return nil, &SyntaxError{Line: 1, Reason: "no header row: the file is empty"}
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var header []string
	for i, f := range fields {
		name := string(f.Text)
		if name == "" {
			name = fmt.Sprintf("column%d", i+1)
		}
		if seen[name] {
			return nil, &SyntaxError{Line: s.Line(), Reason: fmt.Sprintf("two columns are named %q", shorten(name))}
		}
		seen[name] = true
		header = append(header, name)
	}
	return header, nil
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// Header returns the names of the file's columns. The caller must not change it.
func (r *Reader) Header() []string { return r.header }

// Bind sets the columns to read, found by name in the header. Columns of the file that
// are not named are skipped. It must be called before the first Next.
func (r *Reader) Bind(cols []schema.Column) error {
	at := map[string]int{}
	for i, name := range r.header {
		at[name] = i
	}
	r.cols, r.fields, r.batch.Columns = cols, nil, nil
	for i := range cols {
		field, ok := at[cols[i].Name]
		if !ok {
			return fmt.Errorf("%w: the file has no column %q; it has %s", schema.ErrInvalidArgument,
				shorten(cols[i].Name), shortList(r.header))
		}
		r.fields = append(r.fields, field)
		r.batch.Columns = append(r.batch.Columns, vector.New(cols[i].Kind(), 0))
	}
	return nil
}

// Report names the columns of the file whose text a rejected row carries. A column
// that the file lacks is left out.
func (r *Reader) Report(names []string) {
	r.report = nil
	for _, name := range names {
		if i := slices.Index(r.header, name); i >= 0 {
			r.report = append(r.report, i)
		}
	}
}

// reported returns the text of the fields that tell a row apart, which may lack some.
func (r *Reader) reported(fields []Field) (key []string) {
	for _, i := range r.report {
		switch {
		case i >= len(fields):
			key = append(key, "?")
		case fields[i].IsNull():
			key = append(key, "NULL")
		default:
			key = append(key, shorten(string(fields[i].Text[:min(len(fields[i].Text), 64)])))
		}
	}
	return key
}

func shortList(names []string) string {
	list := strings.Join(names[:min(len(names), 20)], ", ")
	if len(names) > 20 {
		list += ", …"
	}
	return list
}

// Next returns the next rows, at most max accepted ones, and io.EOF after the last. A
// batch may end early, when its text is long, but is never without accepted and
// rejected rows. A row that does not fit the columns is rejected; damage to the file's
// structure is a [SyntaxError] that ends the reading.
func (r *Reader) Next(max int) (*Batch, error) {
	b := &r.batch
	for i, v := range b.Columns {
		v.Reset(r.cols[i].Kind())
	}
	b.Rows, b.Rejected = b.Rows[:0], nil
	for size := 0; len(b.Rows) < max && len(b.Rejected) < max && size < maxBatchBytes; {
		fields, err := r.scan.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if isBlank(fields, len(r.header)) {
			continue
		}
		r.row++
		if err := r.appendRow(fields); err != nil {
			b.Rejected = append(b.Rejected, Rejected{Row: r.row, Line: r.scan.Line(), Key: r.reported(fields), Err: err})
			size += rejectedBytes
			continue
		}
		b.Rows = append(b.Rows, r.row)
		for _, f := range fields {
			size += len(f.Text)
		}
	}
	if len(b.Rows)+len(b.Rejected) == 0 {
		return nil, io.EOF
	}
	return b, nil
}

// rejectedBytes is about the memory of a Rejected.
const rejectedBytes = 256

// appendRow appends one row to every vector, or to none.
func (r *Reader) appendRow(fields []Field) error {
	if len(fields) != len(r.header) {
		return &schema.ValueError{Row: -1, Reason: fmt.Sprintf("%d fields, the header has %d", len(fields), len(r.header))}
	}
	for i, v := range r.batch.Columns {
		if err := appendCell(v, &r.cols[i], fields[r.fields[i]]); err != nil {
			for _, v := range r.batch.Columns[:i] {
				v.Truncate(len(r.batch.Rows))
			}
			return err
		}
	}
	return nil
}

// appendCell parses a field as the column's type.
func appendCell(v *vector.Vector, c *schema.Column, f Field) error {
	switch {
	case f.IsNull():
		x, err := c.Convert(nil)
		if err != nil {
			return err
		}
		return v.Append(x)
	case c.Type == schema.String:
		return v.AppendBytes(f.Text)
	case c.Type == schema.Varchar:
		if _, err := c.Parse(view(f.Text)); err != nil {
			return err
		}
		return v.AppendBytes(f.Text)
	}
	x, err := c.Parse(view(f.Text))
	if err != nil {
		return err
	}
	return v.Append(x)
}
