package binfmt

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/minikudu/minikudu/vfs"
	"pgregory.net/rapid"
)

func sampleHeader() Header {
	return Header{Kind: FileRowSet, Format: Format1, Compatible: 5, Incompatible: 2, Store: UUID{1, 2, 15: 9}, File: 77}
}

func TestHeaderRoundTrip(t *testing.T) {
	h := sampleHeader()
	b := h.AppendTo([]byte("xx"))[2:]
	if len(b) != HeaderSize {
		t.Fatalf("%d bytes", len(b))
	}
	got, err := DecodeHeader(b)
	if err != nil || got != h {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := got.Check(h); err != nil {
		t.Fatal(err)
	}
}

func TestHeaderEveryBitFlipped(t *testing.T) {
	h := sampleHeader()
	b := h.AppendTo(nil)
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		_, err := DecodeHeader(b)
		var c *vfs.CorruptionError
		if !errors.As(err, &c) || c.Section != "file header" {
			t.Fatalf("bit %d: %v", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for n := range len(b) {
		if _, err := DecodeHeader(b[:n]); !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestHeaderCheck(t *testing.T) {
	want := sampleHeader()
	for name, c := range map[string]struct {
		change func(*Header)
		err    error
	}{
		"kind":     {func(h *Header) { h.Kind = FileLog }, vfs.ErrCorruption},
		"store":    {func(h *Header) { h.Store[3] = 1 }, vfs.ErrCorruption},
		"number":   {func(h *Header) { h.File++ }, vfs.ErrCorruption},
		"features": {func(h *Header) { h.Incompatible |= 1 << 31 }, vfs.ErrNotSupported},
		"key":      {func(h *Header) { h.Key = 3 }, vfs.ErrNotSupported},
	} {
		h := want
		c.change(&h)
		if err := h.Check(want); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := want
	h.Compatible = ^uint32(0)
	if err := h.Check(want); err != nil {
		t.Errorf("unknown compatible bits: %v", err)
	}
	h.Format = FormatNewest + 1
	if _, err := DecodeHeader(h.AppendTo(nil)); !errors.Is(err, vfs.ErrNotSupported) {
		t.Errorf("newer format: %v", err)
	}
}

func TestReaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c, d := rapid.Uint8().Draw(t, "a"), rapid.Uint16().Draw(t, "b"), rapid.Uint32().Draw(t, "c"), rapid.Uint64().Draw(t, "d")
		u, s := rapid.Uint64().Draw(t, "u"), rapid.Int64().Draw(t, "s")
		p := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "p")
		buf := binary.LittleEndian.AppendUint16([]byte{a}, b)
		buf = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(buf, c), d)
		buf = AppendBytes(binary.AppendVarint(binary.AppendUvarint(buf, u), s), p)
		buf = AppendField(AppendBool(buf, true), 6, p)

		r := NewReader(buf)
		if r.U8() != a || r.U16() != b || r.U32() != c || r.U64() != d || r.Uvarint() != u || r.Varint() != s ||
			r.String(40) != string(p) || !r.Bool() {
			t.Fatal("value changed")
		}
		tag, f, more := r.Field()
		if tag != 6 || !more || string(f.Rest()) != string(p) {
			t.Fatal("field changed")
		}
		if _, _, more = r.Field(); more || r.Err() != nil || r.Len() != 0 {
			t.Fatal("end not seen")
		}
		cut := rapid.IntRange(0, len(buf)-1).Draw(t, "cut")
		r = NewReader(buf[:cut])
		r.U8()
		r.U16()
		r.U32()
		r.U64()
		r.Uvarint()
		r.Varint()
		r.Bytes(40)
		r.Bool()
		r.Field()
		if r.Bool(); !errors.Is(r.Err(), vfs.ErrCorruption) {
			t.Fatalf("cut at %d of %d: %v", cut, len(buf), r.Err())
		}
	})
}

func TestReaderRefusesHugeLengths(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<64-1)
	for name, f := range map[string]func(*Reader){
		"take":  func(r *Reader) { r.Take(1<<64 - 1) },
		"bytes": func(r *Reader) { r.Bytes(1 << 30) },
		"count": func(r *Reader) { r.Count(1) },
		"max":   func(r *Reader) { r.UvarintMax(7) },
		"field": func(r *Reader) { r.Field() },
		"bool":  func(r *Reader) { r.Bool() },
	} {
		r := NewReader(append(huge, huge...))
		f(r)
		if !errors.Is(r.Err(), vfs.ErrCorruption) || r.Len() != 0 || r.U32() != 0 {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
}

func TestUnknownFields(t *testing.T) {
	r := NewReader(nil)
	r.Skip(4)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	if r.Skip(5); !errors.Is(r.Err(), vfs.ErrNotSupported) {
		t.Fatal(r.Err())
	}
}

func TestMergeMovesOffset(t *testing.T) {
	outer := NewReader(make([]byte, 20))
	inner := NewReader([]byte{1})
	inner.U8()
	inner.U8()
	outer.Merge(inner, 10)
	var c *vfs.CorruptionError
	if !errors.As(outer.Err(), &c) || c.Offset != 11 || outer.Len() != 0 {
		t.Fatal(outer.Err())
	}
}

func TestReaderAllocates(t *testing.T) {
	buf := AppendBytes(binary.LittleEndian.AppendUint64(nil, 5), []byte("abc"))
	if n := testing.AllocsPerRun(100, func() {
		r := Reader{buf: buf}
		r.U64()
		r.Bytes(10)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzHeader(f *testing.F) {
	h := sampleHeader()
	f.Add(h.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeader(b)
		if err == nil && string(h.AppendTo(nil)[:52]) != string(b[:9])+"\x00"+string(b[10:52]) {
			t.Fatal("decoded header encodes differently")
		}
	})
}
