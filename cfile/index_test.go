package cfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// unhex decodes hex with spaces.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func leafOf(keys ...string) *indexBuilder {
	b := &indexBuilder{}
	for i, k := range keys {
		b.add([]byte(k), BlockPtr{Offset: int64(90000 + i), Size: 65536})
	}
	return b
}

func TestIndexBlockBytes(t *testing.T) {
	b := &indexBuilder{}
	b.add([]byte("a"), BlockPtr{16, 300})
	b.add([]byte("carr"), BlockPtr{316, 290})
	b.add([]byte("fi"), BlockPtr{606, 280})
	want := unhex(t, "01 61 10 ac 02 04 63 61 72 72 bc 02 a2 02 02 66 69 de 04 98 02"+
		"00 00 00 00 05 00 00 00 0e 00 00 00 08 03 10 00 04 00 00 00")
	if got := b.appendTo(nil, true); !bytes.Equal(got, want) {
		t.Fatalf("got % x\nwant % x", got, want)
	}
	if got := (&indexBuilder{}).appendTo(nil, true); !bytes.Equal(got, unhex(t, "08 00 10 00 04 00 00 00")) {
		t.Fatalf("empty leaf: % x", got)
	}
}

func TestItem22SearchIndexBlock(t *testing.T) {
	b, err := parseIndexBlock(leafOf("hello-10", "hello-20", "hello-30", "hello-40").appendTo(nil, true))
	if err != nil || !b.leaf || len(b.entries) != 4 {
		t.Fatalf("%+v, %v", b, err)
	}
	for key, want := range map[string]int{"hello": -1, "hello-10": 0, "hello-15": 0, "hello-20": 1, "hello-25": 1,
		"hello-30": 2, "hello-40": 3, "hello-45": 3} {
		if got := b.search([]byte(key)); got != want {
			t.Errorf("search %s: %d, want %d", key, got, want)
		}
	}
	empty, err := parseIndexBlock((&indexBuilder{}).appendTo(nil, true))
	if err != nil || len(empty.entries) != 0 || empty.search([]byte("x")) != -1 {
		t.Fatalf("%+v, %v", empty, err)
	}
	for _, n := range []int{1, 8, 65536} {
		b, err := parseIndexBlock(leafOf(make([]string, n)...).appendTo(nil, true))
		if err != nil || len(b.entries) != n {
			t.Fatalf("%d empty keys: %d, %v", n, len(b.entries), err)
		}
	}
}

func TestItem23DamagedIndexTrailer(t *testing.T) {
	good := leafOf("k").appendTo(nil, true)
	change := func(f func(b []byte) []byte) []byte { return f(append([]byte(nil), good...)) }
	size := func(n uint32) func(b []byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[len(b)-4:], n); return b }
	}
	count := func(n int64) func(b []byte) []byte {
		return func(b []byte) []byte {
			b = b[:len(b)-8]
			at := len(b)
			b = append(appendNumber(b, 1, uint64(n)), 0x10, 0)
			return binary.LittleEndian.AppendUint32(b, uint32(len(b)-at))
		}
	}
	for name, b := range map[string][]byte{
		"empty":          {},
		"3 bytes":        good[:3],
		"trailer 3":      change(size(3)),
		"trailer 1234":   change(size(1234)),
		"trailer max":    change(size(1<<32 - 1)),
		"count 5":        change(count(5)),
		"count -3":       change(count(-3)),
		"count max":      change(count(1<<31 - 1)),
		"count 0":        change(count(0)),
		"no kind":        append(append([]byte(nil), good[:len(good)-8]...), 8, 1, 8, 1, 4, 0, 0, 0),
		"kind 2":         change(func(b []byte) []byte { b[len(b)-5] = 2; return b }),
		"start 1":        change(func(b []byte) []byte { b[len(b)-12] = 1; return b }),
		"long key":       change(func(b []byte) []byte { b[0] = 100; return b }),
		"short key":      change(func(b []byte) []byte { b[0] = 0; return b }),
		"unended offset": change(func(b []byte) []byte { b[4] |= 0x80; return b }),
	} {
		if x, err := parseIndexBlock(b); err == nil {
			t.Errorf("%s: no error, %d entries", name, len(x.entries))
		}
	}
}

func TestItem24Separators(t *testing.T) {
	for _, c := range [][3]string{{"", "apple", "a"}, {"cardamom", "carrot", "carr"}, {"fennel", "fig", "fi"},
		{"", "", ""}, {"abc", "abcd", "abcd"}, {"abc", "abcde", "abcd"}, {"abcd", "abc", "abc"}, {"x", "x", "x"}} {
		if got := separator([]byte(c[0]), []byte(c[1])); string(got) != c[2] {
			t.Errorf("separator(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestTreeLevels builds trees of every depth with tiny blocks and finds every key.
func TestTreeLevels(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 17, 64, 255, 1000, 5000} {
		f := newFakeFile(t)
		tree := newTreeWriter(64, f.blocks.write)
		for i := range n {
			p, err := f.blocks.write([]byte("data"))
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.add(binary.BigEndian.AppendUint32(nil, uint32(2*i)), p); err != nil {
				t.Fatal(err)
			}
		}
		root, err := tree.finish()
		if err != nil {
			t.Fatal(err)
		}
		r := f.reader(Footer{Positional: root, Rows: int64(2 * n)})
		idx, err := r.LoadIndex(t.Context())
		if err != nil || idx.Pages() != n || idx.Rows() != int64(2*n) {
			t.Fatalf("%d pages: %d, %v", n, idx.Pages(), err)
		}
		for row := range 2 * n {
			if idx.PageOf(int64(row)) != row/2 {
				t.Fatalf("row %d on page %d", row, idx.PageOf(int64(row)))
			}
		}
	}
}

// Rows are found on pages of any lengths.
func TestPageOf(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 200 {
		idx, even := &PageIndex{Starts: []uint32{0}}, r.IntN(2) == 0
		for n := 1 + r.IntN(20); len(idx.Offsets) < n; {
			rows := uint32(100)
			if !even || len(idx.Offsets) == n-1 {
				rows = 1 + r.Uint32N(200)
			}
			idx.Offsets = append(idx.Offsets, 0)
			idx.Starts = append(idx.Starts, idx.Starts[len(idx.Starts)-1]+rows)
		}
		for row, page := int64(0), 0; row < idx.Rows(); row++ {
			if uint32(row) == idx.Starts[page+1] {
				page++
			}
			if got := idx.PageOf(row); got != page {
				t.Fatalf("row %d on page %d, want %d of %v", row, got, page, idx.Starts)
			}
		}
	}
}

// TestHostileTrees builds trees that no writer makes.
func TestHostileTrees(t *testing.T) {
	key := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	inner := func(f *fakeFile, p ...BlockPtr) BlockPtr {
		b := &indexBuilder{}
		for _, q := range p {
			b.add(key(0), q)
		}
		return f.block(b.appendTo(nil, false))
	}
	leaf := func(f *fakeFile, kv ...any) BlockPtr {
		b := &indexBuilder{}
		for i := 0; i < len(kv); i += 2 {
			b.add(key(uint32(kv[i].(int))), kv[i+1].(BlockPtr))
		}
		return f.block(b.appendTo(nil, true))
	}
	for name, build := range map[string]func(f *fakeFile) BlockPtr{
		"pointer to itself": func(f *fakeFile) BlockPtr {
			at := BlockPtr{Offset: f.blocks.off, Size: 23 + 4}
			return inner(f, at)
		},
		"cycle":          func(f *fakeFile) BlockPtr { return inner(f, BlockPtr{Offset: f.blocks.off + 27, Size: 27}) },
		"past the end":   func(f *fakeFile) BlockPtr { return inner(f, BlockPtr{Offset: 1 << 40, Size: 27}) },
		"near 2^63":      func(f *fakeFile) BlockPtr { return inner(f, BlockPtr{Offset: 1<<63 - 2, Size: 27}) },
		"size 2^32-1":    func(f *fakeFile) BlockPtr { return inner(f, BlockPtr{Offset: 16, Size: 1<<32 - 1}) },
		"in the header":  func(f *fakeFile) BlockPtr { return inner(f, BlockPtr{Offset: 3, Size: 20}) },
		"rows backwards": func(f *fakeFile) BlockPtr { a, b := f.data(), f.data(); return leaf(f, 0, a, 0, b) },
		"first row 1":    func(f *fakeFile) BlockPtr { return leaf(f, 1, f.data()) },
		"row past end":   func(f *fakeFile) BlockPtr { a, b := f.data(), f.data(); return leaf(f, 0, a, 9, b) },
		"same page twice": func(f *fakeFile) BlockPtr {
			a := f.data()
			return leaf(f, 0, a, 1, a)
		},
		"pages backwards": func(f *fakeFile) BlockPtr { a, b := f.data(), f.data(); return leaf(f, 0, b, 1, a) },
		"empty inner":     func(f *fakeFile) BlockPtr { return inner(f) },
		"empty leaf":      func(f *fakeFile) BlockPtr { return leaf(f) },
		"empty child":     func(f *fakeFile) BlockPtr { return inner(f, leaf(f)) },
		"same child twice": func(f *fakeFile) BlockPtr {
			c := leaf(f, 0, f.data())
			return inner(f, c, c)
		},
		"uneven depth": func(f *fakeFile) BlockPtr {
			a := leaf(f, 0, f.data())
			b := inner(f, leaf(f, 0, f.data()))
			return inner(f, a, b)
		},
		"first key differs": func(f *fakeFile) BlockPtr {
			c := leaf(f, 0, f.data())
			b := &indexBuilder{}
			b.add(key(1), c)
			return f.block(b.appendTo(nil, false))
		},
		"deep": func(f *fakeFile) BlockPtr {
			c := leaf(f, 0, f.data())
			for range 70 {
				c = inner(f, c)
			}
			return c
		},
	} {
		f := newFakeFile(t)
		r := f.reader(Footer{Positional: build(f), Rows: 9})
		_, err := r.LoadIndex(t.Context())
		wantCorruption(t, name, err)
	}
}

func FuzzIndexBlock(f *testing.F) {
	f.Add(leafOf().appendTo(nil, true))
	f.Add(leafOf("a", "bb", "").appendTo(nil, false))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseIndexBlock(b)
		if err != nil {
			return
		}
		again := &indexBuilder{}
		for _, e := range x.entries {
			again.add(e.key, e.ptr)
			x.search(e.key)
		}
		if y, err := parseIndexBlock(again.appendTo(nil, x.leaf)); err != nil || fmt.Sprint(y) != fmt.Sprint(x) {
			t.Fatalf("%v, %v, %v", x, y, err)
		}
	})
}
