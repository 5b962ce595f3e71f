package csvio

import (
	"bytes"
	"io"
	"math"
	"unicode/utf8"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// flushBytes is how much text is gathered before it is written.
const flushBytes = 64 << 10

// Writer writes rows as CSV with a header row and LF line ends. A field is quoted only
// where it must be: it holds a comma, a quote or a line break, or is an empty string,
// which is written "" because null is nothing.
type Writer struct {
	dst    io.Writer
	cols   []schema.Column
	buf    []byte
	header bool // written
}

// NewWriter returns a writer of the given columns.
func NewWriter(w io.Writer, cols []schema.Column) *Writer { return &Writer{dst: w, cols: cols} }

// Write writes n rows; vectors are in the order of the columns.
func (w *Writer) Write(vectors []*vector.Vector, n int) error {
	w.writeHeader()
	for row := range n {
		for i, v := range vectors {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			switch {
			case v.IsNull(row):
			case w.cols[i].Type.IsText():
				w.buf = appendField(w.buf, v.BytesAt(row))
			default: // never holds what needs quotes
				w.buf = formatCell(w.buf, &w.cols[i], v, row)
			}
		}
		w.buf = append(w.buf, '\n')
		if len(w.buf) >= flushBytes {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Writer) writeHeader() {
	if w.header {
		return
	}
	w.header = true
	for i := range w.cols {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = appendField(w.buf, []byte(w.cols[i].Name))
	}
	w.buf = append(w.buf, '\n')
}

// Flush writes what has been gathered, and the header if no row has been written.
func (w *Writer) Flush() error {
	w.writeHeader()
	_, err := w.dst.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// appendField appends a field that is not null, in quotes if it needs them.
func appendField(dst, field []byte) []byte {
	if len(field) > 0 && !bytes.ContainsAny(field, ",\"\r\n") && !bytes.HasPrefix(field, byteOrderMark) {
		return append(dst, field...)
	}
	dst = append(dst, '"')
	for {
		n := bytes.IndexByte(field, '"')
		if n < 0 {
			return append(append(dst, field...), '"')
		}
		dst = append(append(dst, field[:n+1]...), '"')
		field = field[n+1:]
	}
}

// formatCell appends a cell that is not null as text.
func formatCell(dst []byte, c *schema.Column, v *vector.Vector, row int) []byte {
	if v.Kind() == schema.KindBytes {
		return c.FormatBytes(dst, view(v.BytesAt(row)))
	}
	return c.Format(dst, v.Value(row))
}

// JSONWriter writes rows as JSON, one object a line, its keys in the order of the
// columns. Integers and decimals are numbers of all their digits; floats are numbers,
// except that NaN, Infinity and -Infinity, which JSON lacks, are strings of that name;
// times, dates and binary are strings as [schema.Column.Format] writes them. Bytes of
// text that are not UTF-8 become U+FFFD.
type JSONWriter struct {
	dst  io.Writer
	cols []schema.Column
	keys [][]byte // "name": of each column
	buf  []byte
	cell []byte
}

// NewJSONWriter returns a writer of the given columns.
func NewJSONWriter(w io.Writer, cols []schema.Column) *JSONWriter {
	j := &JSONWriter{dst: w, cols: cols}
	for i := range cols {
		j.keys = append(j.keys, append(AppendJSONString(nil, []byte(cols[i].Name)), ':'))
	}
	return j
}

// Write writes n rows; vectors are in the order of the columns.
func (w *JSONWriter) Write(vectors []*vector.Vector, n int) error {
	for row := range n {
		w.buf = append(w.buf, '{')
		for i, v := range vectors {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			w.buf = append(w.buf, w.keys[i]...)
			w.appendValue(&w.cols[i], v, row)
		}
		w.buf = append(w.buf, '}', '\n')
		if len(w.buf) >= flushBytes {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush writes what has been gathered.
func (w *JSONWriter) Flush() error {
	_, err := w.dst.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *JSONWriter) appendValue(c *schema.Column, v *vector.Vector, row int) {
	if v.IsNull(row) {
		w.buf = append(w.buf, "null"...)
		return
	}
	if isJSONLiteral(c, v, row) {
		w.buf = formatCell(w.buf, c, v, row)
		return
	}
	w.cell = formatCell(w.cell[:0], c, v, row)
	w.buf = AppendJSONString(w.buf, w.cell)
}

// isJSONLiteral reports whether a cell's text is a JSON number, true or false.
func isJSONLiteral(c *schema.Column, v *vector.Vector, row int) bool {
	switch c.Type {
	case schema.UnixtimeMicros, schema.Date:
		return false
	}
	switch v.Kind() {
	case schema.KindBytes:
		return false
	case schema.KindFloat32, schema.KindFloat64:
		f := v.Value(row).Float()
		return !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return true
}

// AppendJSONString appends text as a JSON string; bytes that are not UTF-8 become
// U+FFFD.
func AppendJSONString(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		b := text[i]
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b == '\t':
			dst = append(dst, '\\', 't')
		case b == '\r':
			dst = append(dst, '\\', 'r')
		case b < 0x20 || b == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		case b < utf8.RuneSelf:
			dst = append(dst, b)
		default:
			r, n := utf8.DecodeRune(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}
