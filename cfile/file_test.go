package cfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// sampleFile is a file of Kudu's format: int32, not null, plain, rows 1, 2, -3.
const sampleFile = `6b756475 63666c32 00000000 02943ad3
	03000000 00000000 01000000 02000000 fdffffff 3ef7f74e
	04 00000000 10 18 00000000 08011000 04000000 33c9f219
	1f6ba458 0805 1001 1803 22060a0408281017 3001 4000 5001 6b756475 63666c32 14000000`

func sampleOptions() WriterOptions {
	return WriterOptions{Type: schema.Int32, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone, NoZones: true}
}

func TestGoldenSampleFile(t *testing.T) {
	want := unhex(t, strings.ReplaceAll(sampleFile, "\t", ""))
	rows := vec(t, schema.KindInt32, 1, 2, -3)
	got, s := write(t, sampleOptions(), rows)
	if !bytes.Equal(got, want) {
		t.Fatalf("wrote % x\nwant  % x", got, want)
	}
	if s.Rows != 3 || s.Bytes != 99 || s.Pages != 1 || s.Zones != nil {
		t.Errorf("summary %+v", s)
	}
	r, _ := open(t, want, ReaderOptions{})
	same(t, "sample", readAll(t, r), rows)
	if f := r.Footer(); f.Positional != (BlockPtr{40, 23}) || f.Type != schema.Int32 || f.Encoding != schema.EncodingPlain {
		t.Errorf("footer %+v", f)
	}
}

func TestGoldenCompressedBlock(t *testing.T) {
	for _, c := range []struct {
		name, hex, payload string
	}{
		{"stored", "04000000 01020304 d4f762cc", "01020304"},
		{"lz4", "08010000 2240 0001 001f 0704 00e7 5000 0700 0000 011b 8416", "4000000000000000" + strings.Repeat("07000000", 64)},
	} {
		b := unhex(t, c.hex)
		r := &Reader{src: &memSource{b: b}, length: int64(len(b)), opts: ReaderOptions{MaxPageBytes: maxBlock},
			footer: &Footer{Compression: schema.CompressionLZ4, Incompatible: featureChecksum}, dataEnd: int64(len(b))}
		got, err := r.readBlock(t.Context(), &scratch{}, BlockPtr{0, uint32(len(b))}, partData)
		if err != nil || !bytes.Equal(got, unhex(t, c.payload)) {
			t.Errorf("%s: % x, %v", c.name, got, err)
		}
		if c.name == "stored" {
			var out bytes.Buffer
			w := blockWriter{dst: &out, codec: schema.CompressionLZ4, checksums: true}
			if _, err := w.write(unhex(t, c.payload)); err != nil || !bytes.Equal(out.Bytes(), b) {
				t.Errorf("%s: wrote % x, %v", c.name, out.Bytes(), err)
			}
		}
	}
}

func TestEmptyFile(t *testing.T) {
	for _, typ := range types {
		for _, enc := range encodings(typ) {
			for _, nullable := range []bool{false, true} {
				b, s := write(t, WriterOptions{Type: typ, Encoding: enc, Nullable: nullable, ValueIndex: !nullable && typ.KeyCapable()})
				r, _ := open(t, b, ReaderOptions{})
				if v := readAll(t, r); v.Len() != 0 || s.Rows != 0 || s.Pages != 0 || s.FirstKey != nil {
					t.Fatalf("%s %s: %d rows, %+v", typ, enc, v.Len(), s)
				}
				if err := r.VerifyZones(t.Context(), s.Zones); err != nil {
					t.Fatal(err)
				}
				if !r.footer.Value.IsZero() {
					if row, exact, err := r.SeekKey(t.Context(), []byte("x")); row != 0 || exact || err != nil {
						t.Fatal(row, exact, err)
					}
				}
			}
		}
	}
}

func TestItem13SeekOrdinals(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	for _, typ := range types {
		for _, enc := range encodings(typ) {
			want := cells(t, typ.Kind(), 10000, func(i int) (int64, bool) { return int64(10*i) * int64(1-2*(i&1)), false })
			b, s := write(t, WriterOptions{Type: typ, Encoding: enc, BlockSize: 1024}, want)
			r, _ := open(t, b, ReaderOptions{})
			idx := loadIndex(t, r)
			same(t, fmt.Sprint(typ, enc), readAll(t, r), want)
			if s.Pages < 2 && typ != schema.Bool || idx.Pages() != s.Pages {
				t.Errorf("%s %s: %d pages, index has %d", typ, enc, s.Pages, idx.Pages())
			}
			for _, row := range []int64{0, 5000, 9999} {
				page := idx.PageOf(row)
				v, err := r.ReadPage(t.Context(), idx, page)
				if err != nil || v.Value(int(row-int64(idx.Starts[page]))) != want.Value(int(row)) {
					t.Fatalf("%s %s: row %d: %v", typ, enc, row, err)
				}
			}
			got := vector.New(typ.Kind(), 10000)
			if err := r.AppendRange(t.Context(), idx, 10000, 10001, got); !errors.Is(err, schema.ErrInvalidArgument) {
				t.Fatalf("row 10000: %v", err)
			}
			if err := r.AppendRange(t.Context(), idx, 9990, 10000, got); err != nil {
				t.Fatal(err)
			}
			for at := 0; at < 300; {
				n := 1 + rng.IntN(5)
				part := vector.New(typ.Kind(), n)
				if err := r.AppendRange(t.Context(), idx, int64(at), int64(at+n), part); err != nil {
					t.Fatal(err)
				}
				same(t, "batch", part, want.Slice(at, at+n))
				at += n
			}
		}
	}
}

func TestItem14ValueIndex(t *testing.T) {
	for _, enc := range encodings(schema.String) {
		for _, big := range []bool{false, true} {
			n, pad := 10000, ""
			if big {
				n, pad = 60, strings.Repeat("0", 66000)
			}
			key := func(i int) string { return fmt.Sprintf("%shello %04d", pad, i) }
			v := vector.New(schema.KindBytes, n)
			for i := range n {
				if err := v.AppendBytes([]byte(key(i))); err != nil {
					t.Fatal(err)
				}
			}
			b, s := write(t, WriterOptions{Type: schema.String, Encoding: enc, BlockSize: 1024, ValueIndex: true}, v)
			if string(s.FirstKey) != key(0) || string(s.LastKey) != key(n-1) {
				t.Errorf("keys %.20q, %.20q", s.FirstKey, s.LastKey)
			}
			r, _ := open(t, b, ReaderOptions{})
			same(t, enc.String(), readAll(t, r), v)
			idx := loadIndex(t, r)
			keys, err := r.LoadKeyIndex(t.Context(), idx)
			if err != nil {
				t.Fatal(err)
			}
			seek := func(key string, row int64, exact bool) {
				t.Helper()
				got, ok, err := r.SeekKey(t.Context(), []byte(key))
				if got != row || ok != exact || err != nil {
					t.Fatalf("%s: seek %.20q: %d, %t, %v; want %d, %t", enc, key, got, ok, err, row, exact)
				}
				page := keys.Page([]byte(key))
				cells, err := r.ReadPage(t.Context(), idx, page)
				if err != nil {
					t.Fatal(err)
				}
				pos, ok := SearchPage(cells, []byte(key))
				if int64(idx.Starts[page])+int64(pos) != row || ok != exact {
					t.Fatalf("%s: key index: page %d, %d, %t; want %d", enc, page, pos, ok, row)
				}
			}
			step := 1 + n/500
			for i := 1; i < n; i += step {
				seek(key(i-1)+".5", int64(i), false)
				seek(key(i), int64(i), true)
			}
			seek(key(n-1)+".5", int64(n), false)
			seek("", 0, false)
			seek(pad+"hello", 0, false)
			seek("zzz", int64(n), false)
		}
	}
}

func TestValueIndexIntegers(t *testing.T) {
	for _, typ := range []schema.Type{schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Decimal128, schema.Date} {
		for _, enc := range encodings(typ) {
			n := 5000
			if typ == schema.Int8 {
				n = 100
			}
			v := cells(t, typ.Kind(), n, func(i int) (int64, bool) { return int64(2*i - n), false })
			if typ == schema.Decimal128 {
				v = vector.New(typ.Kind(), n)
				for i := range n {
					vector.AppendFixed(v, schema.Int128From(int64(2*i-n)))
				}
			}
			b, _ := write(t, WriterOptions{Type: typ, Encoding: enc, BlockSize: 512, ValueIndex: true, indexBlockSize: 64}, v)
			r, _ := open(t, b, ReaderOptions{})
			same(t, enc.String(), readAll(t, r), v)
			for i := range n {
				for d := range 2 {
					x := int64(2*i - n + d)
					key := keyOf(typ.Kind(), x)
					row, exact, err := r.SeekKey(t.Context(), key)
					if err != nil || exact != (d == 0) || row != int64(i+d) {
						t.Fatalf("%s %s: seek %d: %d, %t, %v", typ, enc, x, row, exact, err)
					}
					if row, exact, err = r.SeekKey(t.Context(), key[:len(key)-1]); err != nil || exact || row > int64(i) {
						t.Fatalf("%s %s: short key: %d, %t, %v", typ, enc, row, exact, err)
					}
				}
			}
		}
	}
}

func keyOf(kind schema.Kind, x int64) []byte {
	v := schema.IntValue(kind, x)
	if kind == schema.KindInt128 {
		v = schema.Int128Value(schema.Int128From(x))
	}
	return encoding.AppendKeyCell(nil, v, true)
}

func TestValueIndexOnly(t *testing.T) {
	v := cells(t, schema.KindBytes, 3000, func(i int) (int64, bool) { return int64(i), false })
	b, _ := write(t, WriterOptions{Type: schema.Binary, Encoding: schema.EncodingPrefix, Compression: schema.CompressionLZ4,
		BlockSize: 4096, ValueIndex: true, NoPositionalIndex: true}, v)
	r, _ := open(t, b, ReaderOptions{})
	same(t, "key file", readAll(t, r), v)
	for i := range 3000 {
		if row, exact, err := r.SeekKey(t.Context(), v.BytesAt(i)); row != int64(i) || !exact || err != nil {
			t.Fatal(row, exact, err)
		}
	}
}

func TestValueIndexRefusals(t *testing.T) {
	for name, o := range map[string]WriterOptions{
		"nullable": {Type: schema.Int32, Nullable: true, ValueIndex: true},
		"bool":     {Type: schema.Bool, ValueIndex: true},
		"double":   {Type: schema.Double, ValueIndex: true},
		"no index": {Type: schema.Int32, NoPositionalIndex: true},
		"type 2":   {Type: 2},
		"prefix":   {Type: schema.Int32, Encoding: schema.EncodingPrefix},
		"codec 77": {Type: schema.Int32, Compression: 77},
	} {
		if _, err := NewWriter(&bytes.Buffer{}, o); !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := WriterOptions{Type: schema.Int64, BlockSize: 512, ValueIndex: true}
	_, _, err := tryWrite(o, cells(t, schema.KindInt64, 1000, func(i int) (int64, bool) { return int64(-i), false }))
	if !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("descending values: %v", err)
	}
	b, _ := write(t, WriterOptions{Type: schema.Int32}, vec(t, schema.KindInt32, 1))
	r, _ := open(t, b, ReaderOptions{})
	if _, _, err := r.SeekKey(t.Context(), nil); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("seek without value index: %v", err)
	}
}

func TestItem15Nullable(t *testing.T) {
	null := func(i int) bool {
		switch i / 64 % 4 {
		case 0:
			return true
		case 2:
			return false
		}
		return i&1 == 1
	}
	rng := rand.New(rand.NewPCG(15, 1))
	for _, typ := range types {
		for _, enc := range encodings(typ) {
			for _, codec := range []schema.Compression{schema.CompressionNone, schema.CompressionLZ4} {
				for name, isNull := range map[string]func(int) bool{"pattern": null, "all": func(int) bool { return true },
					"none": func(int) bool { return false }} {
					want := cells(t, typ.Kind(), 10000, func(i int) (int64, bool) { return int64(i), isNull(i) })
					b, s := write(t, WriterOptions{Type: typ, Encoding: enc, Compression: codec, Nullable: true, BlockSize: 1024}, want)
					r, _ := open(t, b, ReaderOptions{})
					what := fmt.Sprint(typ, enc, codec, name)
					same(t, what, readAll(t, r), want)
					if err := r.VerifyZones(t.Context(), s.Zones); err != nil {
						t.Fatal(what, err)
					}
					idx := loadIndex(t, r)
					for range 5 {
						at := rng.Int64N(9970)
						got := vector.New(typ.Kind(), 30)
						for k := range int64(3) {
							if err := r.AppendRange(t.Context(), idx, at+10*k, at+10*k+10, got); err != nil {
								t.Fatal(err)
							}
						}
						same(t, what, got, want.Slice(int(at), int(at)+30))
					}
				}
			}
		}
	}
}

func TestAllNullPagesAreBounded(t *testing.T) {
	v := cells(t, schema.KindInt64, 1<<16, func(int) (int64, bool) { return 0, true })
	var buf bytes.Buffer
	w, err := NewWriter(&buf, WriterOptions{Type: schema.Int64, Nullable: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if err := w.Append(v); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, _ := open(t, buf.Bytes(), ReaderOptions{})
	idx := loadIndex(t, r)
	for page := range idx.Pages() {
		if from, to := idx.PageRows(page); 8*(to-from) > inflation*defaultBlockSize {
			t.Fatalf("page %d has %d rows", page, to-from)
		}
	}
	if buf.Len() > 4096 {
		t.Errorf("%d bytes for nulls", buf.Len())
	}
}

func TestItem16MetadataAndDefaults(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, WriterOptions{Type: schema.Int32})
	if err != nil {
		t.Fatal(err)
	}
	value := []byte("one")
	w.AddMetadata("early", value)
	value[0] = 'X'
	if err := w.Append(vec(t, schema.KindInt32, 1, 2)); err != nil {
		t.Fatal(err)
	}
	w.AddMetadata("late", []byte{})
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, _ := open(t, buf.Bytes(), ReaderOptions{})
	if len(r.header) != 1 || r.header[0].Key != "early" || len(r.footer.Metadata) != 2 || r.footer.Metadata[0].Key != "late" {
		t.Errorf("header %v, footer %v", r.header, r.footer.Metadata)
	}
	early, ok := r.Metadata("early")
	late, ok2 := r.Metadata("late")
	if _, ok3 := r.Metadata("unknown"); string(early) != "one" || !ok || len(late) != 0 || !ok2 || ok3 {
		t.Error(early, ok, late, ok2, ok3)
	}
	if r.Encoding() != schema.EncodingBitShuffle || r.Compression() != schema.CompressionNone {
		t.Errorf("defaults %s, %s", r.Encoding(), r.Compression())
	}
	if err := w.Append(vec(t, schema.KindInt32, 1)); err == nil {
		t.Error("append after finish")
	}
}

func TestMetadataLimit(t *testing.T) {
	for _, early := range []bool{true, false} {
		w, err := NewWriter(&bytes.Buffer{}, WriterOptions{Type: schema.Int32})
		if err != nil {
			t.Fatal(err)
		}
		if !early {
			if err := w.Append(vec(t, schema.KindInt32, 1)); err != nil {
				t.Fatal(err)
			}
		}
		w.AddMetadata("big", make([]byte, maxMessage))
		if _, err := w.Finish(); !errors.Is(err, schema.ErrInvalidArgument) {
			t.Errorf("early %t: %v", early, err)
		}
	}
}

func TestItem18Checksums(t *testing.T) {
	v := vec(t, schema.KindBytes, "a", "b")
	for _, with := range []bool{true, false} {
		b, _ := write(t, WriterOptions{Type: schema.String, noChecksums: !with}, v)
		for _, skip := range []bool{true, false} {
			r, _ := open(t, b, ReaderOptions{AllowNoChecksums: true, skipChecksums: skip})
			same(t, fmt.Sprint(with, skip), readAll(t, r), v)
		}
		_, _, err := tryOpen(b, ReaderOptions{})
		if with != (err == nil) || !with && !errors.Is(err, ErrNoChecksums) {
			t.Errorf("checksums %t: %v", with, err)
		}
	}
}

func TestItem18FeatureBits(t *testing.T) {
	for bit := range 32 {
		f := Footer{Type: schema.Int32, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone,
			Positional: BlockPtr{40, 23}, Rows: 3, Incompatible: featureChecksum | 1<<bit, Compatible: 1 << bit}
		_, _, err := tryOpen(withFooter(t, f.appendTo(nil)), ReaderOptions{})
		if known := bit == 0 || bit == 31; known != (err == nil) || !known && !errors.Is(err, vfs.ErrNotSupported) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
}

// withFooter returns the sample file with another footer message.
func withFooter(t testing.TB, msg []byte) []byte {
	b := unhex(t, strings.ReplaceAll(sampleFile, "\t", ""))[:63]
	covered := binary.LittleEndian.AppendUint32(append(bytes.Clone(msg), magic...), uint32(len(msg)))
	return append(binary.LittleEndian.AppendUint32(b, checksum(covered)), covered...)
}

func TestFooterRefusals(t *testing.T) {
	good := Footer{Type: schema.Int32, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone,
		Positional: BlockPtr{40, 23}, Rows: 3, Incompatible: featureChecksum}
	for _, c := range []struct {
		name        string
		change      func(f *Footer)
		unsupported bool
	}{
		{"type 0", func(f *Footer) { f.Type = 0 }, true},
		{"IS_DELETED", func(f *Footer) { f.Type = 18 }, true},
		{"NESTED", func(f *Footer) { f.Type = 21 }, true},
		{"type 255", func(f *Footer) { f.Type = 255 }, true},
		{"encoding 3", func(f *Footer) { f.Encoding = 3 }, true},
		{"encoding 99", func(f *Footer) { f.Encoding = 99 }, true},
		{"encoding of a page", func(f *Footer) { f.Encoding, f.Incompatible = schema.EncodingDelta, 1<<31|1 }, true},
		{"paged without bit", func(f *Footer) { f.Encoding = schema.EncodingPaged }, false},
		{"paged with a codec", func(f *Footer) {
			f.Encoding, f.Compression, f.Incompatible = schema.EncodingPaged, schema.CompressionLZ4, 1<<31|1
		}, false},
		{"paged numbers with words", func(f *Footer) {
			f.Encoding, f.Dictionary, f.Incompatible = schema.EncodingPaged, BlockPtr{16, 24}, 1<<31|1
		}, false},
		{"codec 0", func(f *Footer) { f.Compression = 0 }, true},
		{"codec 5", func(f *Footer) { f.Compression = 5 }, true},
		{"zstd without bit", func(f *Footer) { f.Compression = schema.CompressionZstd }, false},
		{"prefix of int", func(f *Footer) { f.Encoding = schema.EncodingPrefix }, false},
		{"dict without words", func(f *Footer) { f.Type, f.Encoding = schema.String, schema.EncodingDict }, false},
		{"words without dict", func(f *Footer) { f.Dictionary = BlockPtr{16, 24} }, false},
		{"no index", func(f *Footer) { f.Positional = BlockPtr{} }, false},
		{"value index on nulls", func(f *Footer) { f.Value, f.Nullable = BlockPtr{40, 23}, true }, false},
		{"value index on double", func(f *Footer) { f.Value, f.Type = BlockPtr{40, 23}, schema.Double }, false},
		{"root in header", func(f *Footer) { f.Positional = BlockPtr{4, 23} }, false},
		{"root past end", func(f *Footer) { f.Positional = BlockPtr{40, 24} }, false},
		{"root far out", func(f *Footer) { f.Positional = BlockPtr{1<<63 - 1, 24} }, false},
		{"rows 2^62", func(f *Footer) { f.Rows = 1 << 62 }, false},
		{"rows -1", func(f *Footer) { f.Rows = -1 }, false},
	} {
		f := good
		c.change(&f)
		_, _, err := tryOpen(withFooter(t, f.appendTo(nil)), ReaderOptions{})
		if c.unsupported {
			if !errors.Is(err, vfs.ErrNotSupported) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		wantCorruption(t, c.name, err)
	}
}

func TestItem19Incompressible(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 1))
	want := cells(t, schema.KindInt32, 100000, func(int) (int64, bool) { return int64(int32(rng.Uint32())), false })
	for _, codec := range codecs {
		b, _ := write(t, WriterOptions{Type: schema.Int32, Encoding: schema.EncodingPlain, Compression: codec}, want)
		r, _ := open(t, b, ReaderOptions{})
		same(t, codec.String(), readAll(t, r), want)
		err := r.Walk(t.Context(), func(b BlockInfo) error {
			if b.Kind == BlockData && !b.Stored {
				return fmt.Errorf("page at %d is compressed: %d of %d", b.Offset, b.Size, b.PlainSize)
			}
			return nil
		})
		if err != nil {
			t.Error(codec, err)
		}
	}
}

func TestItem19LargeBlock(t *testing.T) {
	big := vec(t, schema.KindBytes, strings.Repeat("x", maxCompressed+1), "y")
	for _, codec := range codecs {
		b, _, err := tryWrite(WriterOptions{Type: schema.Binary, Encoding: schema.EncodingPlain, Compression: codec}, big)
		if codec != schema.CompressionNone {
			if !errors.Is(err, schema.ErrInvalidArgument) {
				t.Errorf("%s: %v", codec, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r, _ := open(t, b, ReaderOptions{})
		same(t, "large", readAll(t, r), big)
		r, _ = open(t, b, ReaderOptions{MaxPageBytes: 1 << 20})
		if _, err := r.ReadPage(t.Context(), loadIndex(t, r), 0); !errors.Is(err, ErrPageTooLarge) {
			t.Errorf("page above the limit: %v", err)
		}
	}
}

func TestItem20BlockSize(t *testing.T) {
	for _, c := range []struct{ given, want int }{{0, 256 << 10}, {-1, 256 << 10}, {100, 512}, {512, 512}, {1 << 20, 1 << 20}} {
		o, err := WriterOptions{Type: schema.Int32, BlockSize: c.given}.resolve()
		if err != nil || o.BlockSize != c.want {
			t.Errorf("%d: %d, %v", c.given, o.BlockSize, err)
		}
	}
	o, _ := WriterOptions{Type: schema.String, BlockSize: 16 << 20}.resolve()
	if o.BlockSize != maxCodecBlock {
		t.Errorf("with codec: %d", o.BlockSize)
	}
}

func TestItem21WhatIsRead(t *testing.T) {
	v := cells(t, schema.KindInt64, 100000, func(i int) (int64, bool) { return int64(i * i), false })
	b, s := write(t, WriterOptions{Type: schema.Int64, Encoding: schema.EncodingPlain, BlockSize: 4096}, v)
	r, src := open(t, b, ReaderOptions{})
	if n := src.bytes.Load(); n == 0 || n > 2048 {
		t.Errorf("open read %d bytes", n)
	}
	before := src.bytes.Load()
	idx := loadIndex(t, r)
	if n := src.bytes.Load() - before; n == 0 || n > 20*int64(s.Pages) {
		t.Errorf("index of %d pages read %d bytes", s.Pages, n)
	}
	reads := src.reads.Load()
	before = src.bytes.Load()
	if _, err := r.ReadPage(t.Context(), idx, 7); err != nil {
		t.Fatal(err)
	}
	if n := src.reads.Load() - reads; n != 1 || src.bytes.Load()-before != int64(idx.Sizes[7]) {
		t.Errorf("page took %d reads, %d bytes", n, src.bytes.Load()-before)
	}
}

func TestItem26ColumnsAreIndependent(t *testing.T) {
	const rows = 20000
	var files [3]*Reader
	var srcs [3]*memSource
	for c := range files {
		v := cells(t, schema.KindInt32, rows, func(i int) (int64, bool) { return int64(c*i + i), false })
		b, _ := write(t, WriterOptions{Type: schema.Int32, Encoding: schema.EncodingPlain, BlockSize: 512}, v)
		files[c], srcs[c] = open(t, b, ReaderOptions{})
	}
	for c, r := range files[:2] {
		idx := loadIndex(t, r)
		for at := int64(0); at < rows; at += 1000 {
			if at/1000%2 == int64(c) {
				continue
			}
			v := vector.New(schema.KindInt32, 1000)
			if err := r.AppendRange(t.Context(), idx, at, at+1000, v); err != nil {
				t.Fatal(err)
			}
			for i, x := range vector.Values[int32](v) {
				if int(x) != (c+1)*(int(at)+i) {
					t.Fatalf("column %d row %d: %d", c, int(at)+i, x)
				}
			}
		}
		if n := srcs[c].bytes.Load(); n > 3*rows {
			t.Errorf("column %d read %d bytes", c, n)
		}
	}
	if n := srcs[2].reads.Load(); n > 3 {
		t.Errorf("column 2 was read %d times", n)
	}
}

func TestDictionaryOverflow(t *testing.T) {
	for name, words := range map[string]int{"few": 256, "many": 20000} {
		want := cells(t, schema.KindBytes, 20000, func(i int) (int64, bool) { return int64(i * 7919 % words), false })
		b, _ := write(t, WriterOptions{Type: schema.String, BlockSize: 8192}, want)
		r, _ := open(t, b, ReaderOptions{})
		same(t, name, readAll(t, r), want)
		idx := loadIndex(t, r)
		coded := 0
		var dict *vector.Vector
		for page := range idx.Pages() {
			v, err := r.ReadPage(t.Context(), idx, page)
			if err != nil {
				t.Fatal(err)
			}
			if v.Dict() != nil {
				coded++
				if dict != nil && v.Dict() != dict {
					t.Errorf("page %d has words of its own", page)
				}
				dict = v.Dict()
			}
		}
		if coded == 0 || (coded == idx.Pages()) != (words == 256) {
			t.Errorf("%s: %d of %d pages in dictionary form", name, coded, idx.Pages())
		}
	}
}

func TestDictionaryFormInput(t *testing.T) {
	words := vec(t, schema.KindBytes, "red", "green", "blue")
	valid := vector.NewBitmap(6)
	valid.SetRange(1, 6)
	in := vector.FromCodes([]uint8{0, 2, 1, 0, 2, 2}, words, valid)
	for _, enc := range encodings(schema.String) {
		b, s := write(t, WriterOptions{Type: schema.String, Encoding: enc, Nullable: true}, in, in)
		r, _ := open(t, b, ReaderOptions{})
		want := vec(t, schema.KindBytes, nil, "blue", "green", "red", "blue", "blue", nil, "blue", "green", "red", "blue", "blue")
		same(t, enc.String(), readAll(t, r), want)
		if z := s.Zones.File; z.Min.Str() != "blue" || z.Max.Str() != "red" || z.Nulls != 2 {
			t.Errorf("%s: zone %+v", enc, z)
		}
	}
}

// TestPrefixPagesStaySmall writes values whose prefix encoding is a thousandth of them.
func TestPrefixPagesStaySmall(t *testing.T) {
	pad := strings.Repeat("p", 10000)
	v := vector.New(schema.KindBytes, 2000)
	for i := range 2000 {
		if err := v.AppendBytes(fmt.Appendf(nil, "%s%05d", pad, i)); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := write(t, WriterOptions{Type: schema.Binary, Encoding: schema.EncodingPrefix, BlockSize: 64 << 10}, v)
	r, _ := open(t, b, ReaderOptions{MaxPageBytes: 1 << 20})
	same(t, "prefix", readAll(t, r), v)
}

func TestC10LargeValues(t *testing.T) {
	for _, size := range []int{0, 1, 64 << 10, 1 << 20} {
		for _, enc := range encodings(schema.String) {
			v := vector.New(schema.KindBytes, 6)
			for i := range 6 {
				if err := v.AppendBytes(bytes.Repeat([]byte{byte('a' + i)}, size)); err != nil {
					t.Fatal(err)
				}
			}
			b, s := write(t, WriterOptions{Type: schema.Binary, Encoding: enc}, v)
			r, _ := open(t, b, ReaderOptions{})
			same(t, enc.String(), readAll(t, r), v)
			if err := r.VerifyZones(t.Context(), s.Zones); err != nil {
				t.Error(err)
			}
		}
	}
	huge := vec(t, schema.KindBytes, strings.Repeat("z", maxCompressed+1))
	if _, _, err := tryWrite(WriterOptions{Type: schema.Binary, Encoding: schema.EncodingPlain, Compression: schema.CompressionLZ4}, huge); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("value above the limit: %v", err)
	}
}

func TestWriterErrors(t *testing.T) {
	var buf bytes.Buffer
	w, _ := NewWriter(&buf, WriterOptions{Type: schema.Int32, Column: "c"})
	if err := w.Append(vec(t, schema.KindInt64, 1)); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("wrong kind: %v", err)
	}
	if _, err := w.Finish(); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("finish after an error: %v", err)
	}
	if _, _, err := tryWrite(WriterOptions{Type: schema.Int32}, vec(t, schema.KindInt32, 1, nil)); !errors.Is(err, schema.ErrInvalidArgument) {
		t.Errorf("null: %v", err)
	}
	for k := range 5 {
		fail := &failingWriter{left: k}
		w, _ := NewWriter(fail, WriterOptions{Type: schema.String})
		err := w.Append(vec(t, schema.KindBytes, "x"))
		if err == nil {
			_, err = w.Finish()
		}
		if !errors.Is(err, errDisk) {
			t.Errorf("write %d fails: %v", k, err)
		}
	}
}

var errDisk = errors.New("disk full")

type failingWriter struct{ left int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left == 0 {
		return 0, errDisk
	}
	w.left--
	return len(p), nil
}

func TestEstimatedSize(t *testing.T) {
	var buf bytes.Buffer
	w, _ := NewWriter(&buf, WriterOptions{Type: schema.Int64, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone, BlockSize: 4096})
	v := cells(t, schema.KindInt64, 100, func(i int) (int64, bool) { return int64(i), false })
	for i := range 100 {
		if err := w.Append(v); err != nil {
			t.Fatal(err)
		}
		if n := w.EstimatedSize(); n < int64(800*i) || n > int64(800*i)+8192 {
			t.Fatalf("%d rows: estimate %d", 100*(i+1), n)
		}
	}
}

func TestCancelledRead(t *testing.T) {
	b, _ := write(t, sampleOptions(), vec(t, schema.KindInt32, 1, 2, -3))
	r, _ := open(t, b, ReaderOptions{})
	idx := loadIndex(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.ReadPage(ctx, idx, 0); !errors.Is(err, context.Canceled) || errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("%v", err)
	}
}

func TestWalk(t *testing.T) {
	v := cells(t, schema.KindBytes, 5000, func(i int) (int64, bool) { return int64(i), false })
	b, s := write(t, WriterOptions{Type: schema.String, BlockSize: 4096, ValueIndex: true, indexBlockSize: 128}, v)
	r, _ := open(t, b, ReaderOptions{})
	count := map[BlockKind]int{}
	levels := map[BlockKind]int{}
	next, row := int64(testBase), int64(0)
	err := r.Walk(t.Context(), func(b BlockInfo) error {
		if b.Offset != next {
			t.Errorf("%s at %d, want %d", b.Kind, b.Offset, next)
		}
		next += b.Size
		count[b.Kind]++
		levels[b.Kind] = max(levels[b.Kind], b.Level)
		if b.Kind == BlockData {
			if b.FirstRow != row {
				t.Errorf("page begins at row %d, want %d", b.FirstRow, row)
			}
			row += b.Rows
		}
		return nil
	})
	if err != nil || next != testBase+int64(len(b)) || row != 5000 {
		t.Fatal(err, next, row)
	}
	if count[BlockHeader] != 1 || count[BlockFooter] != 1 || count[BlockDictionary] != 1 || count[BlockData] != s.Pages ||
		count[BlockPositional] < 3 || levels[BlockPositional] == 0 || levels[BlockValue] == 0 {
		t.Errorf("%v, levels %v, %d pages", count, levels, s.Pages)
	}
}

func TestPageEncodings(t *testing.T) {
	v := vector.New(schema.KindInt64, 0)
	for i := range 20000 {
		x := int64(i) * 1000
		if i >= 10000 {
			x = int64(uint64(i*i*i) * 0x9e3779b97f4a7c15)
		}
		vector.AppendFixed(v, x)
	}
	b, s := write(t, WriterOptions{Type: schema.Int64, Encoding: schema.EncodingPaged, BlockSize: 8000}, v)
	r, _ := open(t, b, ReaderOptions{})
	counts, err := r.PageEncodings(loadIndex(t, r))
	if err != nil || len(counts) < 2 || counts[0].Encoding != schema.EncodingDelta || r.Footer().Incompatible != featureChecksum|featureExtended {
		t.Fatalf("%+v, features %#x, %v", counts, r.Footer().Incompatible, err)
	}
	var walked []PageEncoding
	total := int64(0)
	if err := r.Walk(t.Context(), func(b BlockInfo) error {
		if b.Kind == BlockData {
			walked = AddPageEncodings(walked, PageEncoding{b.Encoding, b.Compression, 1})
			total++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(walked, counts) || total != int64(s.Pages) {
		t.Errorf("counted %+v, found %+v in %d pages", counts, walked, s.Pages)
	}
}

func TestEndPage(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, WriterOptions{Type: schema.Int32, Encoding: schema.EncodingPaged})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(3) {
		if err := w.Append(vector.FromFixed(schema.KindInt32, []int32{i, i}, nil)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second ends nothing
			if err := w.EndPage(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s, err := w.Finish(); err != nil || s.Pages != 3 || s.Rows != 6 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := w.EndPage(); err != nil {
		t.Error(err)
	}
}
