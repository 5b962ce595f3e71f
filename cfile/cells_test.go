package cfile

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

func TestReadCells(t *testing.T) {
	packed := 0
	for _, typ := range types {
		for _, enc := range encodings(typ) {
			want := cells(t, typ.Kind(), 3000, func(i int) (int64, bool) { return int64(i % 100), i%7 == 3 })
			b, _ := write(t, WriterOptions{Type: typ, Nullable: true, Encoding: enc, BlockSize: 1024}, want)
			r, _ := open(t, b, ReaderOptions{})
			idx := loadIndex(t, r)
			got := vector.New(typ.Kind(), 3000)
			for page := range idx.Pages() {
				v, p, err := r.ReadCells(t.Context(), idx, page)
				if err != nil || (v == nil) == (p == nil) {
					t.Fatalf("%s %s: %v, %v, %v", typ, enc, v, p, err)
				}
				if v != nil {
					err = got.AppendRange(v, 0, v.Len())
				} else {
					packed++
					for i := range p.Rows() {
						err = errors.Join(err, p.AppendTo(got, i))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			same(t, fmt.Sprint(typ, enc), got, want)
		}
	}
	if packed == 0 {
		t.Error("all pages were decoded")
	}
}

// ReadCells refuses what ReadPage refuses.
func TestReadCellsChecksPages(t *testing.T) {
	want := cells(t, schema.KindInt64, 3000, func(i int) (int64, bool) { return int64(i % 100), false })
	b, _ := write(t, WriterOptions{Type: schema.Int64, Encoding: schema.EncodingPaged}, want)
	r, _ := open(t, b, ReaderOptions{MaxPageBytes: 20000})
	idx := loadIndex(t, r)
	if _, _, err := r.ReadCells(t.Context(), idx, 0); !errors.Is(err, ErrPageTooLarge) {
		t.Errorf("page above the limit: %v", err)
	}
	r, _ = open(t, b, ReaderOptions{})
	for _, shift := range []uint32{0, 1} {
		moved := *idx
		moved.Starts = slices.Clone(idx.Starts)
		moved.Starts[shift]++
		if v, p, err := r.ReadCells(t.Context(), &moved, 0); v != nil || p != nil || !errors.Is(err, vfs.ErrCorruption) {
			t.Errorf("page at another place: %v, %v, %v", v, p, err)
		}
	}
}
