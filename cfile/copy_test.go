package cfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// pagedColumns returns columns of many small pages, by name.
func pagedColumns(t *testing.T) map[string]*vector.Vector {
	rnd := rand.New(rand.NewPCG(7, 8))
	out := map[string]*vector.Vector{}
	add := func(name string, kind schema.Kind, f func(i int) schema.Value) {
		v := vector.New(kind, 0)
		for i := range 30_000 {
			if err := v.Append(f(i)); err != nil {
				t.Fatal(err)
			}
		}
		out[name] = v
	}
	add("packed", schema.KindInt64, func(i int) schema.Value {
		return schema.IntValue(schema.KindInt64, int64(rnd.IntN(1<<20)))
	})
	add("planes", schema.KindInt64, func(i int) schema.Value {
		return schema.IntValue(schema.KindInt64, []int64{3, 1 << 40, 77, 1 << 55, 5, 9, 1e12, 4}[i%8])
	})
	add("doubles", schema.KindFloat64, func(i int) schema.Value { return schema.Float64Value(rnd.NormFloat64()) })
	add("texts", schema.KindBytes, func(i int) schema.Value {
		return schema.StringValue(fmt.Sprintf("line %d of %x", i, rnd.Uint32()))
	})
	add("nulls", schema.KindInt32, func(i int) schema.Value {
		if i/500%2 == 0 {
			return schema.Null
		}
		return schema.IntValue(schema.KindInt32, int64(i))
	})
	add("bits", schema.KindBool, func(i int) schema.Value { return schema.BoolValue(rnd.IntN(2) == 0) })
	return out
}

var typeOfKind = map[schema.Kind]schema.Type{schema.KindInt32: schema.Int32, schema.KindInt64: schema.Int64,
	schema.KindFloat64: schema.Double, schema.KindBytes: schema.String, schema.KindBool: schema.Bool}

func pagedOptions(v *vector.Vector) WriterOptions {
	o := WriterOptions{Column: "c", Type: typeOfKind[v.Kind()], Nullable: v.Valid() != nil, Encoding: schema.EncodingPaged, BlockSize: 4096}
	if v.Kind() == schema.KindBool {
		o.BlockSize = 512
	}
	return o
}

// copier copies pages of one file to another.
type copier struct {
	*testing.T
	r    *Reader
	idx  *PageIndex
	from *ZoneMap
	w    *Writer
	buf  bytes.Buffer
}

func newCopier(t *testing.T, file []byte, zones *ZoneMap, o WriterOptions) *copier {
	t.Helper()
	c := &copier{T: t, from: zones}
	c.r, _ = open(t, file, ReaderOptions{})
	c.idx = loadIndex(t, c.r)
	var err error
	if c.w, err = NewWriter(&c.buf, o); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *copier) copy(page int) (bool, error) {
	return c.w.CopyPage(context.Background(), c.r, c.idx, page, c.from.Pages[page])
}

// payload returns a page as it is stored.
func payload(t *testing.T, r *Reader, idx *PageIndex, page int) []byte {
	t.Helper()
	s := getScratch()
	defer s.put()
	b, err := r.readBlock(context.Background(), s, idx.ptr(page), partData)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
}

// A file of copied pages only is the same file. After other rows the pages are the same but
// for where they are.
func TestCopyPage(t *testing.T) {
	for name, v := range pagedColumns(t) {
		t.Run(name, func(t *testing.T) {
			o := pagedOptions(v)
			file, sum := write(t, o, v)
			all := newCopier(t, file, sum.Zones, o)
			for p := range all.idx.Pages() {
				if ok, err := all.copy(p); !ok || err != nil {
					t.Fatalf("page %d of %d: %t, %v", p, all.idx.Pages(), ok, err)
				}
			}
			if _, err := all.w.Finish(); err != nil || !bytes.Equal(all.buf.Bytes(), file) {
				t.Errorf("%v, %d bytes of %d", err, all.buf.Len(), len(file))
			}

			c := newCopier(t, file, sum.Zones, o)
			const first, last = 2, 6 // pages copied; the rest is encoded
			cut, end := int(c.idx.Starts[first]), int(c.idx.Starts[last])
			parts := [][2]int{{100, 250}, {0, cut}}
			for _, part := range parts {
				if err := c.w.Append(v.Slice(part[0], part[1])); err != nil {
					t.Fatal(err)
				}
			}
			for p := first; p < last; p++ {
				if ok, err := c.copy(p); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			if err := c.w.Append(v.Slice(end, v.Len())); err != nil {
				t.Fatal(err)
			}
			got, err := c.w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			want := vector.New(v.Kind(), 0)
			for _, part := range [][2]int{{100, 250}, {0, v.Len()}} {
				if err := want.AppendRange(v, part[0], part[1]); err != nil {
					t.Fatal(err)
				}
			}
			r, _ := open(t, c.buf.Bytes(), ReaderOptions{})
			same(t, name, readAll(t, r), want)
			if err := r.VerifyZones(context.Background(), got.Zones); err != nil {
				t.Error(err)
			}
			at := loadIndex(t, r)
			for p := first; p < last; p++ {
				row := c.idx.Starts[p] + 150
				there, _, _, err := encoding.MovePage(nil, payload(t, c.r, c.idx, p), r.format(), row)
				if err != nil || !bytes.Equal(there, payload(t, r, at, at.PageOf(int64(row)))) {
					t.Errorf("page %d is another one, %v", p, err)
				}
			}
		})
	}
}

func TestCopyPageRefusals(t *testing.T) {
	v := pagedColumns(t)["packed"]
	o := pagedOptions(v)
	file, sum := write(t, o, v)
	for name, change := range map[string]func(*WriterOptions){
		"type":        func(o *WriterOptions) { o.Type = schema.UnixtimeMicros },
		"nullable":    func(o *WriterOptions) { o.Nullable = true },
		"encoding":    func(o *WriterOptions) { o.Encoding = schema.EncodingBitShuffle },
		"block size":  func(o *WriterOptions) { o.BlockSize = 0 },
		"value index": func(o *WriterOptions) { o.ValueIndex = true },
	} {
		other := o
		change(&other)
		c := newCopier(t, file, sum.Zones, other)
		if ok, err := c.copy(0); ok || err != nil {
			t.Errorf("another %s: %t, %v", name, ok, err)
		}
		if other.ValueIndex {
			continue // what is beside the pages is no matter
		}
		file, sum := write(t, other, v)
		if ok, err := newCopier(t, file, sum.Zones, o).copy(0); ok || err != nil {
			t.Errorf("from another %s: %t, %v", name, ok, err)
		}
	}
	words := vector.New(schema.KindBytes, 0)
	for i := range 30_000 {
		_ = words.AppendBytes(fmt.Append(nil, "word ", i%7))
	}
	o = pagedOptions(words)
	file, sum = write(t, o, words)
	if ok, err := newCopier(t, file, sum.Zones, o).copy(1); ok || err != nil {
		t.Errorf("numbers of words: %t, %v", ok, err)
	}
	c := newCopier(t, file, sum.Zones, o)
	if _, err := c.w.Finish(); err != nil {
		t.Fatal(err)
	}
	if ok, _ := c.copy(0); ok {
		t.Error("copied to a file that is finished")
	}
}

// Damage is found by the checksum, before the page is anywhere else.
func TestCopyDamagedPage(t *testing.T) {
	v := pagedColumns(t)["texts"]
	o := pagedOptions(v)
	file, sum := write(t, o, v)
	whole := newCopier(t, file, sum.Zones, o)
	const page = 3
	p := whole.idx.ptr(page)
	for at := p.Offset; at < p.Offset+int64(p.Size); at += 7 {
		bad := bytes.Clone(file)
		bad[at] ^= 1 << (at % 8)
		c := newCopier(t, bad, sum.Zones, o)
		ok, err := c.copy(page)
		var damage *vfs.CorruptionError
		if ok || !errors.As(err, &damage) || damage.Path != "some/file" || damage.Offset != testBase+p.Offset || damage.Want == damage.Got {
			t.Fatalf("byte %d: %t, %v", at, ok, err)
		}
		if ok, err := c.copy(page + 1); !ok || err != nil {
			t.Fatalf("the page after it: %t, %v", ok, err)
		}
	}
	c := newCopier(t, file, sum.Zones, o)
	if ok, err := c.w.CopyPage(context.Background(), c.r, c.idx, page, vector.Zone{Rows: 1}); ok || !errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("zone of another page: %t, %v", ok, err)
	}
}
