package cfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// memSource is a Source in memory that counts what is read.
type memSource struct {
	b            []byte
	reads, bytes atomic.Int64
}

func (m *memSource) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.reads.Add(1)
	m.bytes.Add(int64(len(p)))
	return bytes.NewReader(m.b).ReadAt(p, off)
}

// fakeFile is a file of blocks without header and footer.
type fakeFile struct {
	t      testing.TB
	buf    bytes.Buffer
	blocks blockWriter
}

func newFakeFile(t testing.TB) *fakeFile {
	f := &fakeFile{t: t}
	f.blocks = blockWriter{dst: &f.buf, codec: schema.CompressionNone, checksums: true}
	if err := f.blocks.raw(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeFile) block(payload []byte) BlockPtr {
	p, err := f.blocks.write(payload)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fakeFile) data() BlockPtr { return f.block([]byte("data")) }

func (f *fakeFile) reader(footer Footer) *Reader {
	footer.Compression, footer.Incompatible = schema.CompressionNone, featureChecksum
	if footer.Type == 0 {
		footer.Type, footer.Encoding = schema.Int32, schema.EncodingPlain
	}
	return &Reader{src: &memSource{b: f.buf.Bytes()}, length: f.blocks.off, opts: ReaderOptions{MaxPageBytes: maxBlock, Path: "f"},
		footer: &footer, dataStart: 16, dataEnd: f.blocks.off}
}

// wantCorruption fails unless err is damage with a place.
func wantCorruption(t testing.TB, name string, err error) {
	t.Helper()
	var c *vfs.CorruptionError
	if !errors.As(err, &c) {
		t.Errorf("%s: %v, want a CorruptionError", name, err)
	} else if c.Path == "" || c.Section == "" {
		t.Errorf("%s: %v names no place", name, err)
	}
}

// tb is what the helpers need of a test; rapid's has no more.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// write writes a file of the given cells, in one Append each.
func write(t tb, o WriterOptions, cells ...*vector.Vector) ([]byte, Summary) {
	t.Helper()
	b, s, err := tryWrite(o, cells...)
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

func tryWrite(o WriterOptions, cells ...*vector.Vector) ([]byte, Summary, error) {
	var buf bytes.Buffer
	if o.Encoding == schema.EncodingPaged {
		o.Compression = schema.CompressionDefault // that of each page
	}
	w, err := NewWriter(&buf, o)
	if err != nil {
		return nil, Summary{}, err
	}
	for _, v := range cells {
		if err := w.Append(v); err != nil {
			return nil, Summary{}, err
		}
	}
	s, err := w.Finish()
	return buf.Bytes(), s, err
}

// open opens b as a section in the middle of a larger file.
func open(t tb, b []byte, o ReaderOptions) (*Reader, *memSource) {
	t.Helper()
	r, src, err := tryOpen(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, src
}

const testBase = 1000

func tryOpen(b []byte, o ReaderOptions) (*Reader, *memSource, error) {
	if o.Path == "" {
		o.Path, o.Column = "some/file", "c"
	}
	src := &memSource{b: append(append(make([]byte, testBase), b...), "behind"...)}
	r, err := Open(context.Background(), src, testBase, int64(len(b)), o)
	return r, src, err
}

func loadIndex(t tb, r *Reader) *PageIndex {
	t.Helper()
	idx, err := r.LoadIndex(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return idx
}

// readAll verifies the file and returns all its cells.
func readAll(t tb, r *Reader) *vector.Vector {
	t.Helper()
	if err := r.Verify(context.Background()); err != nil {
		t.Fatal(err)
	}
	v := vector.New(r.Type().Kind(), int(r.Rows()))
	if err := r.AppendRange(context.Background(), loadIndex(t, r), 0, r.Rows(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// same fails unless both vectors hold the same cells, bit for bit.
func same(t tb, what string, got, want *vector.Vector) {
	t.Helper()
	if got.Len() != want.Len() {
		t.Fatalf("%s: %d cells, want %d", what, got.Len(), want.Len())
	}
	for i := range want.Len() {
		if got.Value(i) != want.Value(i) {
			t.Fatalf("%s: cell %d differs: %v, want %v", what, i, got.Value(i), want.Value(i))
		}
	}
}

// vec returns a vector of the given kind from Go values: bool, integers, floats, strings, nil.
func vec(t testing.TB, kind schema.Kind, vals ...any) *vector.Vector {
	v := vector.New(kind, len(vals))
	for _, x := range vals {
		var c schema.Value
		switch x := x.(type) {
		case bool:
			c = schema.BoolValue(x)
		case int:
			if c = schema.IntValue(kind, int64(x)); kind == schema.KindInt128 {
				c = schema.Int128Value(schema.Int128From(int64(x)))
			}
		case float64:
			if c = schema.Float64Value(x); kind == schema.KindFloat32 {
				c = schema.Float32Value(float32(x))
			}
		case string:
			c = schema.StringValue(x)
		}
		if err := v.Append(c); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// cells returns n cells of the given kind: f gives each as a number, or null.
func cells(t testing.TB, kind schema.Kind, n int, f func(i int) (x int64, null bool)) *vector.Vector {
	v := vector.New(kind, n)
	for i := range n {
		x, null := f(i)
		c := schema.Null
		if !null {
			c = numbered(kind, x)
		}
		if err := v.Append(c); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// numbered returns a cell of the kind for a number, ascending for numbers below 2^31 where the kind allows.
func numbered(kind schema.Kind, x int64) schema.Value {
	switch kind {
	case schema.KindBool:
		return schema.BoolValue(x&1 == 1)
	case schema.KindInt8:
		return schema.IntValue(kind, int64(int8(x)))
	case schema.KindInt16:
		return schema.IntValue(kind, int64(int16(x)))
	case schema.KindInt32:
		return schema.IntValue(kind, int64(int32(x)))
	case schema.KindInt64:
		return schema.IntValue(kind, x)
	case schema.KindInt128:
		return schema.Int128Value(schema.Int128{Lo: uint64(x) * 0x9e3779b97f4a7c15, Hi: x})
	case schema.KindFloat32:
		return schema.Float32Value(float32(x) * 1.0001)
	case schema.KindFloat64:
		return schema.Float64Value(float64(x) * 1.0001)
	}
	return schema.StringValue(fmt.Sprintf("hello %08d", x))
}

// types holds one type of each kind.
var types = []schema.Type{schema.Bool, schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Decimal128,
	schema.Float, schema.Double, schema.String}

var codecs = []schema.Compression{schema.CompressionNone, schema.CompressionSnappy, schema.CompressionLZ4,
	schema.CompressionZlib, schema.CompressionZstd}

// encodings returns the encodings of a type.
func encodings(typ schema.Type) (out []schema.Encoding) {
	for _, e := range []schema.Encoding{schema.EncodingPlain, schema.EncodingPrefix, schema.EncodingRLE,
		schema.EncodingDict, schema.EncodingBitShuffle} {
		if e.Supports(typ.Kind()) {
			out = append(out, e)
		}
	}
	return append(out, schema.EncodingPaged)
}
