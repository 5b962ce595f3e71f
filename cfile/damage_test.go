package cfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// smallFiles returns one small file of every shape.
func smallFiles(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	add := func(name string, o WriterOptions, v *vector.Vector) {
		var buf bytes.Buffer
		w, err := NewWriter(&buf, o)
		if err != nil {
			t.Fatal(err)
		}
		w.AddMetadata("k", []byte("v"))
		if err := w.Append(v); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		files[name] = buf.Bytes()
	}
	for _, typ := range []schema.Type{schema.Bool, schema.Int32, schema.Double, schema.String} {
		for _, enc := range encodings(typ) {
			v := cells(t, typ.Kind(), 40, func(i int) (int64, bool) { return int64(i / 3), i%5 == 0 })
			add(fmt.Sprint(typ, enc, "nullable"), WriterOptions{Type: typ, Encoding: enc, Nullable: true}, v)
		}
	}
	v := cells(t, schema.KindBytes, 200, func(i int) (int64, bool) { return int64(i), false })
	add("deep", WriterOptions{Type: schema.String, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone, BlockSize: 512, ValueIndex: true, indexBlockSize: 32}, v)
	for _, codec := range codecs {
		add(codec.String(), WriterOptions{Type: schema.String, Compression: codec, BlockSize: 512, ValueIndex: true, indexBlockSize: 64}, v.Slice(0, 60))
	}
	add("keys only", WriterOptions{Type: schema.String, Encoding: schema.EncodingPrefix, ValueIndex: true, NoPositionalIndex: true, BlockSize: 512}, v.Slice(0, 80))
	return files
}

// readEverything opens a file and reads all there is in every way.
func readEverything(b []byte, o ReaderOptions) error {
	ctx := context.Background()
	r, _, err := tryOpen(b, o)
	if err != nil {
		return err
	}
	if _, _, err := r.FileZone(); err != nil {
		return err
	}
	if err := r.Verify(ctx); err != nil {
		return err
	}
	idx, err := r.LoadIndex(ctx)
	if err != nil {
		return err
	}
	for page := range idx.Pages() {
		if _, err := r.ReadPage(ctx, idx, page); err != nil {
			return err
		}
		if _, _, err := r.ReadCells(ctx, idx, page); err != nil {
			return err
		}
	}
	if r.footer.Value.IsZero() {
		return nil
	}
	_, _, err = r.SeekKey(ctx, []byte("hello"))
	return err
}

func TestItem17FlipEveryBit(t *testing.T) {
	for name, b := range smallFiles(t) {
		if err := readEverything(b, ReaderOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for bit := range 8 * len(b) {
			if testing.Short() && bit%8 != bit/8%8 {
				continue
			}
			b[bit/8] ^= 1 << (bit % 8)
			err := readEverything(b, ReaderOptions{})
			b[bit/8] ^= 1 << (bit % 8)
			var c *vfs.CorruptionError
			if !errors.As(err, &c) {
				t.Fatalf("%s: bit %d of byte %d: %v", name, bit%8, bit/8, err)
			}
			if at := testBase + int64(bit/8); c.Path == "" || c.Section == "" || at < c.Offset || at >= c.Offset+c.Length {
				t.Fatalf("%s: byte %d is blamed on %v", name, at, err)
			}
		}
	}
}

// TestC79Truncated opens files that are shorter than they should be.
func TestC79Truncated(t *testing.T) {
	for name, b := range smallFiles(t) {
		for n := range len(b) {
			wantCorruption(t, fmt.Sprint(name, " cut to ", n), readEverything(b[:n], ReaderOptions{}))
			_, err := Open(t.Context(), &memSource{b: b[:n]}, 0, int64(len(b)), ReaderOptions{Path: "p"})
			wantCorruption(t, fmt.Sprint(name, " lost all after ", n), err)
		}
	}
	b := smallFiles(t)["deep"]
	src := &memSource{b: b}
	r, err := Open(t.Context(), src, 0, int64(len(b)), ReaderOptions{Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	idx := loadIndex(t, r)
	src.b = b[:idx.Offsets[3]+5]
	_, err = r.ReadPage(t.Context(), idx, 3)
	wantCorruption(t, "cut under the reader", err)
}

func TestC72DamagedEnds(t *testing.T) {
	good := smallFiles(t)["lz4"]
	for name, b := range map[string][]byte{
		"empty": {}, "zeroes": make([]byte, len(good)), "header twice": append(bytes.Clone(good[:len(good)/2]), good[:len(good)/2]...),
		"other end": append(bytes.Clone(good), 0), "zero end": append(bytes.Clone(good[:len(good)-64]), make([]byte, 64)...),
	} {
		wantCorruption(t, name, readEverything(b, ReaderOptions{}))
	}
	for _, off := range []int64{-1, 1<<63 - 1} {
		_, err := Open(t.Context(), &memSource{}, off, 100, ReaderOptions{Path: "p"})
		wantCorruption(t, fmt.Sprint("offset ", off), err)
	}
	_, err := Open(t.Context(), &memSource{}, 0, -1, ReaderOptions{Path: "p"})
	wantCorruption(t, "negative length", err)
	v1 := bytes.Clone(good)
	copy(v1[len(v1)-12:], magicV1)
	if err := readEverything(v1, ReaderOptions{}); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("version 1: %v", err)
	}
}

// TestC21HeadersAreNotBelieved reads small files that claim to be large.
func TestC21HeadersAreNotBelieved(t *testing.T) {
	le := binary.LittleEndian
	footer := func(n uint32) []byte { return le.AppendUint32([]byte(magic+"\x00\x00\x00\x00"+magic), n) }
	bomb := func(codec schema.Compression, claim uint32) []byte {
		var buf bytes.Buffer
		w := blockWriter{dst: &buf, codec: codec, checksums: true}
		b, err := w.frame(make([]byte, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		le.PutUint32(b, claim)
		return b
	}
	cases := map[string]func() error{
		"magic twice":    func() error { return readEverything([]byte(magic+magic), ReaderOptions{}) },
		"footer of 4 GB": func() error { return readEverything(footer(1<<32-1), ReaderOptions{}) },
		"footer of 64K":  func() error { return readEverything(footer(65536), ReaderOptions{}) },
	}
	for _, enc := range encodings(schema.Int32) {
		for count, page := range map[uint32][]byte{
			1<<32 - 1: append(le.AppendUint32(le.AppendUint32(nil, 1<<32-1), 0), 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0),
			1 << 20:   append(le.AppendUint32(le.AppendUint32(nil, 0), 1<<20), 20, 0, 0, 0, 0, 0, 16, 0, 4, 0, 0, 0),
		} {
			cases[fmt.Sprint(enc, " of rows ", count)] = func() error {
				f := newFakeFile(t)
				p := f.block(page)
				b := &indexBuilder{}
				b.add(make([]byte, 4), p)
				r := f.reader(Footer{Type: schema.Int32, Encoding: enc, Positional: f.block(b.appendTo(nil, true)), Rows: int64(count)})
				return r.Verify(t.Context())
			}
		}
	}
	for _, codec := range codecs[1:] {
		for _, claim := range []uint32{0, 1 << 10, 1<<20 - 1, 1<<20 + 1, 16 << 20, 16<<20 + 1, 1<<32 - 1} {
			cases[fmt.Sprint(codec, " claims ", claim)] = func() error {
				f := newFakeFile(t)
				frame := bomb(codec, claim)
				p := f.block(frame)
				r := f.reader(Footer{})
				r.footer.Compression = codec
				_, err := r.readBlock(t.Context(), &scratch{}, p, partData)
				return err
			}
		}
	}
	for name, f := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := f()
		runtime.ReadMemStats(&after)
		if err == nil || !errors.Is(err, vfs.ErrCorruption) && !errors.Is(err, ErrPageTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 40<<20 {
			t.Errorf("%s: allocated %d bytes", name, n)
		}
	}
}

// TestPagesMustMatchIndex builds files whose pages disagree with the index.
func TestPagesMustMatchIndex(t *testing.T) {
	page := func(count, ordinal uint32) []byte {
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, count), ordinal)
		return append(b, make([]byte, 4*count)...)
	}
	for name, pages := range map[string][2][]byte{
		"ordinal of the first":  {page(3, 1), page(3, 3)},
		"ordinal of the second": {page(3, 0), page(3, 4)},
		"gap":                   {page(2, 0), page(3, 3)},
		"overlap":               {page(4, 0), page(3, 3)},
		"short end":             {page(3, 0), page(2, 3)},
		"long end":              {page(3, 0), page(4, 3)},
	} {
		f := newFakeFile(t)
		b := &indexBuilder{}
		b.add([]byte{0, 0, 0, 0}, f.block(pages[0]))
		b.add([]byte{0, 0, 0, 3}, f.block(pages[1]))
		r := f.reader(Footer{Positional: f.block(b.appendTo(nil, true)), Rows: 6})
		wantCorruption(t, name, r.Verify(t.Context()))
	}
}

func TestVerifyFindsGaps(t *testing.T) {
	f := newFakeFile(t)
	b := &indexBuilder{}
	b.add([]byte{0, 0, 0, 0}, f.block(append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 7, 0, 0, 0)))
	f.block([]byte("nobody's block"))
	r := f.reader(Footer{Positional: f.block(b.appendTo(nil, true)), Rows: 1})
	wantCorruption(t, "gap", r.Verify(t.Context()))
}

func TestVerifyFindsWrongKeys(t *testing.T) {
	v := cells(t, schema.KindBytes, 100, func(i int) (int64, bool) { return int64(i), false })
	leafWith := func(change func(keys []string)) error {
		f := newFakeFile(t)
		var rows, keys indexBuilder
		names := []string{"", "hello 00000050"}
		if change != nil {
			change(names)
		}
		for i := range 2 {
			w, _ := NewWriter(&bytes.Buffer{}, WriterOptions{Type: schema.String, Encoding: schema.EncodingPlain})
			w.enc.Reset(uint32(50 * i))
			if _, err := w.enc.Add(v, 50*i, 50*i+50); err != nil {
				t.Fatal(err)
			}
			p := f.block(w.enc.Finish(nil))
			rows.add(binary.BigEndian.AppendUint32(nil, uint32(50*i)), p)
			keys.add([]byte(names[i]), p)
		}
		r := f.reader(Footer{Type: schema.String, Encoding: schema.EncodingPlain, Rows: 100,
			Positional: f.block(rows.appendTo(nil, true)), Value: f.block(keys.appendTo(nil, true))})
		return r.Verify(t.Context())
	}
	if err := leafWith(nil); err != nil {
		t.Fatal(err)
	}
	wantCorruption(t, "too high", leafWith(func(k []string) { k[1] = "hello 00000051" }))
	wantCorruption(t, "too low", leafWith(func(k []string) { k[1] = "hello 00000048" }))
	wantCorruption(t, "first too high", leafWith(func(k []string) { k[0] = "hello 00000001" }))
	wantCorruption(t, "out of order", leafWith(func(k []string) { k[0], k[1] = "hello 0", "h" }))
}

func FuzzFile(f *testing.F) {
	for _, b := range smallFiles(f) {
		f.Add(b)
	}
	f.Add([]byte(magic + "\x00\x00\x00\x00" + magic + "\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = readEverything(b, ReaderOptions{})
		o := ReaderOptions{skipChecksums: true, AllowNoChecksums: true, MaxPageBytes: 1 << 20}
		if r, _, err := tryOpen(b, o); err == nil {
			_, _ = r.LoadIndex(t.Context())
			_, _, _ = r.SeekKey(t.Context(), []byte("hello 00000007"))
			_ = r.Walk(t.Context(), func(BlockInfo) error { return nil })
		}
		_ = readEverything(b, o)
	})
}

// FuzzIndexTree walks index trees that lie in arbitrary bytes.
func FuzzIndexTree(f *testing.F) {
	for _, name := range []string{"deep", "none"} {
		b := smallFiles(f)[name]
		r, _, err := tryOpen(b, ReaderOptions{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(r.footer.Positional.Offset), uint16(r.footer.Positional.Size), uint32(r.Rows()))
		f.Add(b, uint16(r.footer.Value.Offset), uint16(r.footer.Value.Size), uint32(r.Rows()))
	}
	f.Fuzz(func(t *testing.T, b []byte, off, size uint16, rows uint32) {
		p := BlockPtr{Offset: int64(off), Size: uint32(size)}
		r := &Reader{src: &memSource{b: b}, length: int64(len(b)), dataStart: 12, dataEnd: int64(len(b)),
			opts:   ReaderOptions{skipChecksums: true, MaxPageBytes: 1 << 20, Path: "p"},
			footer: &Footer{Type: schema.Int32, Compression: schema.CompressionNone, Incompatible: featureChecksum, Positional: p, Value: p, Rows: int64(rows)}}
		if r.checkRoots() != nil {
			return
		}
		if idx, err := r.LoadIndex(t.Context()); err == nil {
			_, _ = r.LoadKeyIndex(t.Context(), idx)
		}
		_, _ = r.findPage(t.Context(), []byte{0, 0, 0, 9})
	})
}
