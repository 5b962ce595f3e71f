package encoding

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// Format says what the blocks of a column hold.
type Format struct {
	Kind     schema.Kind
	Encoding schema.Encoding // a concrete one, see [schema.Encoding.Resolve]
	Nullable bool            // each block starts with a bitmap of its nulls
}

// Validate reports whether the combination exists.
func (f Format) Validate() error {
	if f.Kind < schema.KindBool || f.Kind > schema.KindBytes {
		return fmt.Errorf("no encoding for %s: %w", f.Kind, schema.ErrInvalidArgument)
	}
	if f.Encoding == schema.EncodingPaged {
		return nil
	}
	if f.Encoding == schema.EncodingAuto || !f.Encoding.Supports(f.Kind) {
		return fmt.Errorf("encoding %s does not hold %s: %w", f.Encoding, f.Kind, schema.ErrInvalidArgument)
	}
	return nil
}

// Header is what a block says of itself.
type Header struct {
	Ordinal uint32 // of the first row
	Rows    int    // nulls included
}

// Limits bound what a block may decode to. A block that exceeds them is corrupt.
type Limits struct {
	Rows  int // 0 means no limit but Bytes
	Bytes int // memory of the decoded values; 0 means 256 MiB
}

// defaultMaxBytes is what Limits.Bytes stands for when it is zero.
const defaultMaxBytes = 256 << 20

// decoder is a block being decoded: its format, its limits and the file's dictionary.
type decoder struct {
	Format
	dict     *vector.Vector
	maxRows  uint64
	maxBytes uint64
	room     int // rows that the values will be spread over, so that memory is allocated once
}

// Decode decodes a whole block into dst, which it resets. Blocks of code words give a
// vector in dictionary form over dict, the words of the file (see [DecodeDict]); dict is not
// used by other encodings. After an error the content of dst is undefined. Errors about
// the bytes answer errors.Is(err, vfs.ErrCorruption).
func Decode(dst *vector.Vector, block []byte, f Format, dict *vector.Vector, max Limits) (Header, error) {
	d, err := newDecoder(f, dict, max)
	if err != nil {
		return Header{}, err
	}
	if f.Encoding == schema.EncodingPaged {
		return d.page(dst, block)
	}
	return d.block(dst, block)
}

func newDecoder(f Format, dict *vector.Vector, max Limits) (decoder, error) {
	d := decoder{Format: f, dict: dict, maxRows: math.MaxInt32, maxBytes: defaultMaxBytes}
	if max.Rows > 0 {
		d.maxRows = uint64(max.Rows)
	}
	if max.Bytes > 0 {
		d.maxBytes = uint64(max.Bytes)
	}
	return d, f.Validate()
}

// block decodes a block of a concrete encoding.
func (d *decoder) block(dst *vector.Vector, block []byte) (Header, error) {
	if d.Nullable {
		return d.nullable(dst, block)
	}
	return d.values(dst, block)
}

// values decodes a block without nulls.
func (d *decoder) values(dst *vector.Vector, block []byte) (Header, error) {
	switch d.Encoding {
	case schema.EncodingDict:
		return d.codes(dst, block)
	case schema.EncodingCodes:
		return d.wordNumbers(dst, block)
	}
	dst.Reset(d.Kind)
	dst.Reserve(d.room)
	switch {
	case d.Encoding == schema.EncodingRLE && d.Kind == schema.KindBool:
		return d.rleBits(dst, block)
	case d.Encoding == schema.EncodingRLE:
		return d.rle(dst, block)
	case d.Encoding == schema.EncodingBitShuffle:
		return d.bitShuffle(dst, block)
	case d.Encoding == schema.EncodingPrefix:
		return d.prefix(dst, block)
	case d.Encoding >= schema.EncodingPaged:
		return d.pageValues(dst, block)
	case d.Kind == schema.KindBool:
		return d.plainBits(dst, block)
	case d.Kind == schema.KindBytes:
		return d.plainBytes(dst, block)
	}
	return d.plain(dst, block)
}

// pageValues decodes a block of an encoding that only pages have.
func (d *decoder) pageValues(dst *vector.Vector, block []byte) (Header, error) {
	switch d.Encoding {
	case schema.EncodingDelta, schema.EncodingFrame:
		return d.frame(dst, block)
	case schema.EncodingShuffle:
		return d.planes(dst, block)
	case schema.EncodingDistinct:
		return d.distinct(dst, block)
	case schema.EncodingDecimal:
		return d.decimal(dst, block)
	}
	return d.text(dst, block)
}

// check bounds the rows of a block and the memory of its values before any is allocated.
func (d *decoder) check(rows, bytes uint64) error {
	if rows > d.maxRows {
		return vfs.Corruptf("block of %d rows, at most %d expected", rows, d.maxRows)
	}
	if bytes > d.maxBytes {
		return vfs.Corruptf("block decodes to %d bytes, at most %d allowed", bytes, d.maxBytes)
	}
	return nil
}

// shortHeader reads the header {count, ordinal} and returns what follows.
func shortHeader(block []byte) (count uint64, ordinal uint32, rest []byte, err error) {
	if len(block) < 8 {
		return 0, 0, nil, vfs.Corruptf("block of %d bytes is shorter than its header", len(block))
	}
	le := binary.LittleEndian
	return uint64(le.Uint32(block)), le.Uint32(block[4:]), block[8:], nil
}

func appendShortHeader(dst []byte, count int, ordinal uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(count))
	return binary.LittleEndian.AppendUint32(dst, ordinal)
}
