package encoding

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

const most = "ff ff ff ff"

// C21: what a header claims is checked before memory is allocated for it.
func TestC21HostileBlocks(t *testing.T) {
	i32 := func(e schema.Encoding) Format { return Format{schema.KindInt32, e, false} }
	str := func(e schema.Encoding) Format { return Format{schema.KindBytes, e, false} }
	null := func(f Format) Format { f.Nullable = true; return f }
	boolean := Format{schema.KindBool, schema.EncodingRLE, false}
	for _, c := range []struct {
		name  string
		f     Format
		block string
	}{
		{"plain, count 2^32-1", i32(schema.EncodingPlain), most + "00000000"},
		{"plain, count that wraps 32 bits", i32(schema.EncodingPlain), "00000040 00000000"},
		{"plain, a byte too many", i32(schema.EncodingPlain), "01000000 00000000 0102030405"},
		{"plain bool, count 2^32-1", Format{schema.KindBool, schema.EncodingPlain, false}, most + "00000000 00"},
		{"plain bool, a byte too many", Format{schema.KindBool, schema.EncodingPlain, false}, "08000000 00000000 0000"},
		{"bytes, count 2^32-1", str(schema.EncodingPlain), "00000000" + most + "0c000000 00 00 00 00 00"},
		{"bytes, offsets inside the header", str(schema.EncodingPlain), "00000000 00000000 0b000000"},
		{"bytes, offsets past the end", str(schema.EncodingPlain), "00000000 00000000 0d000000"},
		{"bytes, first offset not 12", str(schema.EncodingPlain), "00000000 01000000 0d000000 61 00 0d 00 00 00"},
		{"bytes, offsets descend", str(schema.EncodingPlain), "00000000 03000000 0e000000 61 62 00 0c 0e 0d 00"},
		{"bytes, offset past the bytes", str(schema.EncodingPlain), "00000000 02000000 0d000000 61 00 0c 0e 00 00"},
		{"bytes, bytes after the offsets", str(schema.EncodingPlain), "00000000 01000000 0d000000 61 00 0c 00 00 00 00"},
		{"bytes, bytes of no value", str(schema.EncodingPlain), "00000000 00000000 0d000000 61"},
		{"bytes, groups missing", str(schema.EncodingPlain), "00000000 05000000 0c000000 3f 0c 0c000000 0c000000 0c000000"},
		{"prefix, interval 0", str(schema.EncodingPrefix), "00 00 00 00 00 00 00 00 00"},
		{"prefix, count 2^32-1", str(schema.EncodingPrefix), "c0" + most + "00 10 00 00000000"},
		{"prefix, count 2^32-1 without restarts", str(schema.EncodingPrefix), "cc" + most + "00" + most + "00 00000000"},
		{"prefix, restarts that wrap 32 bits", str(schema.EncodingPrefix), "00 00 00 10 00 01 00 00 40"},
		{"prefix, first shares", str(schema.EncodingPrefix), "00 01 00 10 00 01 00 00 00 00 00"},
		{"prefix, shares more than there is", str(schema.EncodingPrefix), "00 02 00 10 00 00 01 61 02 00 00 00 00 00"},
		{"prefix, suffix past the end", str(schema.EncodingPrefix), "00 01 00 10 00 00 02 61 00 00 00 00"},
		{"prefix, bytes after the last", str(schema.EncodingPrefix), "00 01 00 10 00 00 01 61 00 00 00 00 00"},
		{"prefix, restart elsewhere", str(schema.EncodingPrefix), "00 02 00 01 00 00 01 61 00 01 62 09 00 00 00 01 00 00 00"},
		{"prefix, restart shares", str(schema.EncodingPrefix), "00 02 00 01 00 00 01 61 01 01 62 08 00 00 00 01 00 00 00"},
		{"prefix, restart missing", str(schema.EncodingPrefix), "00 02 00 01 00 00 01 61 00 01 62 00 00 00 00"},
		{"rle, run of none", i32(schema.EncodingRLE), "01000000 00000000 00 05000000"},
		{"rle, literals of none", i32(schema.EncodingRLE), "01000000 00000000 01 05000000"},
		{"rle, endless header", i32(schema.EncodingRLE), "01000000 00000000 ffffffffffff01 05000000"},
		{"rle, header of 2^31", i32(schema.EncodingRLE), "01000000 00000000 8080808008 05000000"},
		{"rle, too few values", i32(schema.EncodingRLE), "03000000 00000000 04 05000000"},
		{"rle, value cut", i32(schema.EncodingRLE), "01000000 00000000 02 050000"},
		{"rle, literals cut", i32(schema.EncodingRLE), "03000000 00000000 03 01000000 02000000 030000"},
		{"rle, early end inside", i32(schema.EncodingRLE), "09000000 00000000 03 01000000 02000000"},
		{"rle, count 2^32-1 in six bytes", i32(schema.EncodingRLE), most + "00000000 feffffff07 05000000"},
		{"rle bool, value 2", boolean, "01000000 00000000 02 02"},
		{"rle bool, no value", boolean, "01000000 00000000 02"},
		{"rle bool, literals cut", boolean, "09000000 00000000 05 01"},
		{"shuffle, count 2^32-1", i32(schema.EncodingBitShuffle), "00000000" + most + "14000000 00000000 04000000"},
		{"shuffle, total", i32(schema.EncodingBitShuffle), "00000000 00000000 15000000 00000000 04000000"},
		{"shuffle, padding", i32(schema.EncodingBitShuffle), "00000000 00000000 14000000 08000000 04000000"},
		{"shuffle, width 3", i32(schema.EncodingBitShuffle), "00000000 00000000 14000000 00000000 03000000"},
		{"shuffle, width of another type", i32(schema.EncodingBitShuffle), "00000000 00000000 14000000 00000000 08000000"},
		{"shuffle, bytes left over", i32(schema.EncodingBitShuffle), "00000000 00000000 15000000 00000000 04000000 00"},
		{"shuffle, sub-block too long", i32(schema.EncodingBitShuffle), "00000000 08000000 1d000000 08000000 04000000 00000006 1000000000"},
		{"shuffle, sub-block of no bytes", i32(schema.EncodingBitShuffle), "00000000 08000000 1d000000 08000000 04000000 00000000 1000000000"},
		{"shuffle, match offset 0", i32(schema.EncodingBitShuffle), "00000000 08000000 23000000 08000000 04000000 0000000b 1f00 0000 0450 0000000000"},
		{"dict, mode 3", str(schema.EncodingDict), "03000000"},
		{"dict, code beyond the words", str(schema.EncodingDict), "01000000 00000000 01000000 21000000 08000000 01000000 00000009 80 0100000000000000"},
		{"dict, codes of 8 bytes", str(schema.EncodingDict), "01000000 00000000 00000000 14000000 00000000 08000000"},
		{"nulls, rows of 6 bytes", null(i32(schema.EncodingPlain)), "808080808001 00 0000000000000000"},
		{"nulls, rows above 32 bits", null(i32(schema.EncodingPlain)), "8080808010 00 0000000000000000"},
		{"nulls, bitmap past the end", null(i32(schema.EncodingPlain)), "01 0b 02 01 00000000 00000000"},
		{"nulls, too few bits", null(i32(schema.EncodingPlain)), "03 02 04 00 00000000 00000000"},
		{"nulls, other count", null(i32(schema.EncodingPlain)), "04 02 08 01 00000000 00000000"},
		{"nulls, 2^31-1 rows in two bytes", null(i32(schema.EncodingPlain)), "ffffffff07 06 feffffff0700 00000000 00000000"},
		{"nothing", i32(schema.EncodingPlain), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			block := unhex(t, c.block)
			var err error
			if n := allocated(func() { _, err = Decode(new(vector.Vector), block, c.f, strs("only"), Limits{Bytes: 1 << 20}) }); n > 2<<20 {
				t.Errorf("allocated %d bytes", n)
			}
			if !errors.Is(err, vfs.ErrCorruption) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Decode(new(vector.Vector), make([]byte, 100), str(schema.EncodingDict), nil, Limits{}); !errors.Is(err, vfs.ErrCorruption) {
		t.Errorf("no dictionary: %v", err)
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What upstream may write or leave in surplus bits is read.
func TestTolerated(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     Format
		block string
		want  *vector.Vector
	}{
		{"surplus values of a run", Format{schema.KindInt8, schema.EncodingRLE, false}, "02000000 00000000 08 05", ints(schema.KindInt8, int8(5), 5)},
		{"padded literals", Format{schema.KindInt8, schema.EncodingRLE, false}, "02000000 00000000 03 0506000000000000", ints(schema.KindInt8, int8(5), 6)},
		{"surplus bits", Format{schema.KindBool, schema.EncodingPlain, false}, "03000000 00000000 fd", bools("101")},
		{"surplus literal bits", Format{schema.KindBool, schema.EncodingRLE, false}, "03000000 00000000 03 fd", bools("101")},
		{"long prefix header", Format{schema.KindBytes, schema.EncodingPrefix, false},
			"ff 01000000 00000000 10000000 00000000 00 01 61 00000000", strs("a")},
	} {
		got, _ := decodeBlock(t, unhex(t, c.block), nil, c.f)
		checkVector(t, got)
		sameVectors(t, got, c.want)
	}
}

// A run and a shared prefix may stand for much; no more is produced than allowed.
func TestC21AmplificationIsBounded(t *testing.T) {
	rle := unhex(t, "ffffff0f 00000000 feffffff07 0500000000000000")
	f := Format{schema.KindInt64, schema.EncodingRLE, false}
	if n := allocated(func() {
		if _, err := Decode(new(vector.Vector), rle, f, nil, Limits{Rows: 1000}); !errors.Is(err, vfs.ErrCorruption) {
			t.Error(err)
		}
	}); n > 1<<16 {
		t.Errorf("allocated %d bytes", n)
	}
	long := vector.New(schema.KindBytes, 0)
	for range 1000 {
		_ = long.AppendBytes(make([]byte, 10000))
	}
	f = Format{schema.KindBytes, schema.EncodingPrefix, false}
	block, _ := encodeBlock(t, long, 0, EncoderOptions{Format: f, RestartInterval: 1 << 20})
	if len(block) > 20000 {
		t.Fatalf("block of %d bytes", len(block))
	}
	if n := allocated(func() {
		if _, err := Decode(new(vector.Vector), block, f, nil, Limits{Bytes: 1 << 20}); !errors.Is(err, vfs.ErrCorruption) {
			t.Error(err)
		}
	}); n > 1<<16 {
		t.Errorf("allocated %d bytes", n)
	}
}

func TestCheckCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for _, width := range []int{1, 2, 4} {
		for range 2000 {
			n := int(1 + min(r.Uint64N(1<<(8*width)-1)>>r.IntN(8*width), 1<<31-2))
			count := 1 + r.IntN(20)
			codes, over := make([]byte, 0, count*width), false
			for range count {
				c := uint64(r.IntN(n))
				switch r.IntN(8) {
				case 0:
					c = uint64(n - 1)
				case 1:
					c = uint64(n) & (1<<(8*width) - 1)
				case 2:
					c = r.Uint64() & (1<<(8*width) - 1)
				}
				over = over || c >= uint64(n)
				codes = append(codes, binary.LittleEndian.AppendUint64(nil, c)[:width]...)
			}
			if err := checkCodes(codes, width, n); (err != nil) != over {
				t.Fatalf("width %d, %d words, codes %x: %v, want error %v", width, n, codes, err, over)
			}
		}
	}
	if checkCodes([]byte{0}, 1, 0) == nil || checkCodes(nil, 1, 0) != nil || checkCodes([]byte{255}, 1, 256) != nil {
		t.Error("borders")
	}
}

// fuzzDecode gives bytes to the decoder of a format. What decodes must encode again and
// then decode to the same.
func fuzzDecode(f *testing.F, formats ...Format) {
	words := strs("", "a", "bc", "def")
	r := rand.New(rand.NewPCG(61, 62))
	for i, format := range formats {
		for _, n := range []int{0, 1, 9, 70} {
			v := randomColumn(r, format, n)
			if format.Encoding == schema.EncodingDict {
				v = vector.FromCodes(make([]uint8, n), words, nil)
			}
			block, _ := encodeBlock(f, v, 3, EncoderOptions{Format: format})
			f.Add(uint8(i), block)
		}
	}
	fuzzBlocks(f, formats, words, sameVectors)
}

// fuzzBlocks decodes whatever comes, and what it decodes to, encoded again.
func fuzzBlocks(f *testing.F, formats []Format, words *vector.Vector, same func(t tester, got, want *vector.Vector)) {
	f.Fuzz(func(t *testing.T, which uint8, block []byte) {
		format := formats[int(which)%len(formats)]
		v := new(vector.Vector)
		limits := Limits{Rows: 1 << 16, Bytes: 1 << 20}
		h, err := Decode(v, block, format, words, limits)
		checkPacked(t, block, format, words, limits, v, h, err)
		if err != nil {
			if !errors.Is(err, vfs.ErrCorruption) {
				t.Fatal(err)
			}
			return
		}
		if h.Rows != v.Len() || h.Rows > 1<<16 {
			t.Fatalf("%d rows said, %d decoded", h.Rows, v.Len())
		}
		checkVector(t, v)
		again, dict := encodeBlock(t, v, h.Ordinal, EncoderOptions{Format: format, BlockSize: 16 << 20})
		got, _ := decodeBlock(t, again, dict, format)
		same(t, got, v)
	})
}

func FuzzPlain(f *testing.F) {
	fuzzDecode(f, Format{schema.KindInt16, schema.EncodingPlain, false}, Format{schema.KindBool, schema.EncodingPlain, false},
		Format{schema.KindInt64, schema.EncodingPlain, true}, Format{schema.KindBool, schema.EncodingPlain, true})
}

func FuzzPlainBytes(f *testing.F) {
	fuzzDecode(f, Format{schema.KindBytes, schema.EncodingPlain, false}, Format{schema.KindBytes, schema.EncodingPlain, true})
}

func FuzzPrefix(f *testing.F) {
	fuzzDecode(f, Format{schema.KindBytes, schema.EncodingPrefix, false}, Format{schema.KindBytes, schema.EncodingPrefix, true})
}

func FuzzRLE(f *testing.F) {
	fuzzDecode(f, Format{schema.KindInt32, schema.EncodingRLE, false}, Format{schema.KindBool, schema.EncodingRLE, false},
		Format{schema.KindInt8, schema.EncodingRLE, true}, Format{schema.KindBool, schema.EncodingRLE, true})
}

func FuzzBitShuffle(f *testing.F) {
	fuzzDecode(f, Format{schema.KindInt32, schema.EncodingBitShuffle, false}, Format{schema.KindInt128, schema.EncodingBitShuffle, true})
}

func FuzzDict(f *testing.F) {
	fuzzDecode(f, Format{schema.KindBytes, schema.EncodingDict, false}, Format{schema.KindBytes, schema.EncodingDict, true})
}
