package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu/internal/cli/csvio"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// rowWriter writes rows in one of the formats.
type rowWriter interface {
	Write(vectors []*vector.Vector, n int) error
	Flush() error
}

// format is the value of --format.
type format struct{ name string }

func (f *format) register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "format", "table", "table, csv or json")
}

// check refuses an unknown format.
func (f *format) check() error {
	switch f.name {
	case "table", "csv", "json":
		return nil
	}
	return usage("--format %q: expected table, csv or json", f.name)
}

// writer returns a writer of the format; --json implies JSON.
func (s *session) writer(f format, cols []schema.Column) rowWriter {
	switch {
	case s.json || f.name == "json":
		return csvio.NewJSONWriter(s.out, cols)
	case f.name == "csv":
		return csvio.NewWriter(s.out, cols)
	}
	return newTableWriter(s.out, cols)
}

// tableWriter writes aligned columns:
//
//	 origin | count(*)
//	--------+----------
//	 ORD    |    12891
//
// It looks at the first rows to find the widths and then streams; a later cell that
// is wider shifts its line.
type tableWriter struct {
	dst    io.Writer
	cols   []schema.Column
	right  []bool     // columns of numbers
	rows   [][]string // gathered before the widths are known
	widths []int      // nil until then
	buf    []byte
}

const (
	sampleRows  = 1000
	maxColWidth = 60
)

func newTableWriter(w io.Writer, cols []schema.Column) *tableWriter {
	t := &tableWriter{dst: w, cols: cols, right: make([]bool, len(cols))}
	for i := range cols {
		k := cols[i].Kind()
		t.right[i] = (k.IsInteger() || k.IsFloat()) && cols[i].Type != schema.Date && cols[i].Type != schema.UnixtimeMicros
	}
	return t
}

// Write writes n rows; vectors are in the order of the columns.
func (t *tableWriter) Write(vectors []*vector.Vector, n int) error {
	for row := range n {
		line := make([]string, len(vectors))
		for i, v := range vectors {
			line[i] = tableCell(&t.cols[i], v.Value(row))
		}
		if t.widths == nil {
			if t.rows = append(t.rows, line); len(t.rows) == sampleRows {
				if err := t.begin(); err != nil {
					return err
				}
			}
			continue
		}
		if err := t.line(line); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what has been gathered.
func (t *tableWriter) Flush() error {
	if t.widths != nil {
		return nil
	}
	return t.begin()
}

// begin fixes the widths and writes the heading and the gathered rows.
func (t *tableWriter) begin() error {
	names := make([]string, len(t.cols))
	t.widths = make([]int, len(t.cols))
	for i := range t.cols {
		names[i] = printable(t.cols[i].Name)
	}
	for _, row := range append([][]string{names}, t.rows...) {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], min(text.StringWidth(cell), maxColWidth))
		}
	}
	for i, name := range names {
		t.widths[i] = max(t.widths[i], text.StringWidth(name))
	}
	if err := t.heading(names); err != nil {
		return err
	}
	rows := t.rows
	t.rows = nil
	for _, row := range rows {
		if err := t.line(row); err != nil {
			return err
		}
	}
	return nil
}

// heading writes the names and a rule.
func (t *tableWriter) heading(names []string) error {
	if err := t.line(names); err != nil {
		return err
	}
	t.buf = t.buf[:0]
	for i, w := range t.widths {
		if i > 0 {
			t.buf = append(t.buf, '+')
		}
		t.buf = append(t.buf, strings.Repeat("-", w+2)...)
	}
	_, err := t.dst.Write(append(t.buf, '\n'))
	return err
}

func (t *tableWriter) line(cells []string) error {
	t.buf = t.buf[:0]
	for i, cell := range cells {
		if i > 0 {
			t.buf = append(t.buf, " |"...)
		}
		t.buf = append(t.buf, ' ')
		pad := max(0, t.widths[i]-text.StringWidth(cell))
		if t.right[i] {
			t.buf = append(append(t.buf, strings.Repeat(" ", pad)...), cell...)
		} else if t.buf = append(t.buf, cell...); i < len(cells)-1 {
			t.buf = append(t.buf, strings.Repeat(" ", pad)...)
		}
	}
	_, err := t.dst.Write(append(t.buf, '\n'))
	return err
}

// tableCell returns a cell as a table shows it.
func tableCell(c *schema.Column, v schema.Value) string {
	if v.IsNull() {
		return "NULL"
	}
	return printable(string(c.Format(nil, v)))
}

// printable replaces what would break a line or command a terminal.
func printable(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = s[i] >= 0x20 && s[i] < 0x7f
	}
	if clean {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == utf8.RuneError && n == 1, r < 0x20, r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// listing is a small result that is put together row by row.
type listing struct {
	cols    []schema.Column
	vectors []*vector.Vector
	rows    int
}

// newListing takes column definitions in the grammar of create.
func newListing(definition string) *listing {
	cols, err := schema.ParseColumns(definition)
	if err != nil {
		panic("cli: " + err.Error())
	}
	l := &listing{cols: cols}
	for i := range cols {
		l.vectors = append(l.vectors, vector.New(cols[i].Kind(), 0))
	}
	return l
}

// add adds a row.
func (l *listing) add(values ...any) {
	for i, v := range values {
		x, err := l.cols[i].Convert(v)
		if err == nil {
			err = l.vectors[i].Append(x)
		}
		if err != nil {
			panic("cli: " + err.Error())
		}
	}
	l.rows++
}

// print prints the listing.
func (s *session) print(f format, l *listing) error {
	w := s.writer(f, l.cols)
	if err := w.Write(l.vectors, l.rows); err != nil {
		return err
	}
	return w.Flush()
}
