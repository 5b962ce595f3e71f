package encoding

import (
	"fmt"
	"math/bits"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	defaultBlockSize = 256 << 10
	minMaxRows       = 256 << 10
	defaultInterval  = 16
	// batchRows is how many rows are handed to a block between two looks at its size.
	batchRows = 100
	// MaxValueBytes is the longest value of KindBytes that can be encoded.
	MaxValueBytes = 128 << 20
)

// EncoderOptions say what an [Encoder] writes. The zero values of the numbers stand
// for their defaults.
type EncoderOptions struct {
	Format
	BlockSize       int // bytes at which a block is full; default 256 KiB
	MaxRows         int // rows at which a block is full, whatever its bytes; default 256 Ki or BlockSize, the larger
	RestartInterval int // PREFIX: values between two that are stored whole; default 16

	Habit *Habit // PAGED: of the column; nil: none
}

func (o EncoderOptions) withDefaults() EncoderOptions {
	if o.BlockSize <= 0 {
		o.BlockSize = defaultBlockSize
	}
	if o.MaxRows <= 0 {
		o.MaxRows = max(minMaxRows, o.BlockSize)
	}
	if o.RestartInterval <= 0 {
		o.RestartInterval = defaultInterval
	}
	return o
}

// builder collects the non-null values of one block of one encoding.
type builder interface {
	reset(ordinal uint32)
	add(v *vector.Vector, from, to int) int // how many were taken; validity is ignored
	full() bool
	count() int
	size() int // bytes finish would append, roughly
	finish(dst []byte) []byte
}

// Encoder builds the blocks of one column, one after the other.
type Encoder struct {
	o           EncoderOptions
	b           builder
	dict        *dictBuilder // DICT only, then the same as b
	page        *pageBuilder // PAGED only, then the same as b
	rows        int
	nulls       bitRuns // nullable columns: 1 = not null
	picked      []int32
	codes       []uint32
	scratch     vector.Vector
	first, last []byte
}

// NewEncoder returns an encoder whose first block starts at ordinal 0.
func NewEncoder(o EncoderOptions) (*Encoder, error) {
	if err := o.Format.Validate(); err != nil {
		return nil, err
	}
	e := &Encoder{o: o.withDefaults()}
	e.b = e.newBuilder()
	e.dict, _ = e.b.(*dictBuilder)
	if e.page, _ = e.b.(*pageBuilder); e.page != nil {
		e.dict = e.page.dict
	}
	e.Reset(0)
	return e, nil
}

func (e *Encoder) newBuilder() builder {
	size, kind := e.o.BlockSize, e.o.Kind
	switch {
	case e.o.Encoding == schema.EncodingPaged:
		return newPageBuilder(e.o)
	case e.o.Encoding == schema.EncodingRLE:
		return newRLEBuilder(kind, size)
	case e.o.Encoding == schema.EncodingBitShuffle:
		return &shuffleBuilder{width: kind.Width(), limit: max(1, size/kind.Width())}
	case e.o.Encoding == schema.EncodingPrefix:
		return &prefixBuilder{limit: size, interval: e.o.RestartInterval}
	case e.o.Encoding == schema.EncodingDict:
		return newDictBuilder(size)
	case kind == schema.KindBool:
		return &plainBitsBuilder{limit: size}
	case kind == schema.KindBytes:
		return &bytesBuilder{limit: size}
	}
	return &plainBuilder{width: kind.Width(), limit: size}
}

// Reset drops the values and starts a block whose first row has the given ordinal. The
// dictionary of a DICT column stays.
func (e *Encoder) Reset(ordinal uint32) {
	e.b.reset(ordinal)
	e.nulls.reset()
	e.rows = 0
}

// Add appends rows [from, to) of v, plain or in dictionary form, and returns how many
// it took: fewer when the block became full on the way, none when it is full. A caller
// finishes a full block, resets the encoder and goes on with the rest.
func (e *Encoder) Add(v *vector.Vector, from, to int) (int, error) {
	if v.Kind() != e.o.Kind {
		return 0, fmt.Errorf("encoding %s as %s: %w", v.Kind(), e.o.Kind, schema.ErrInvalidArgument)
	}
	if err := checkLengths(v, from, to); err != nil {
		return 0, err
	}
	nulls := v.Valid() != nil && v.Valid().CountRange(from, to) != to-from
	if nulls && !e.o.Nullable {
		return 0, fmt.Errorf("null in a column that is not nullable: %w", schema.ErrInvalidArgument)
	}
	to = min(to, from+e.o.MaxRows-e.rows)
	if nulls {
		return e.addNullable(v, from, to), nil
	}
	n := e.addValues(v, from, to)
	e.rows += n
	if e.o.Nullable {
		e.nulls.addRun(true, n)
	} else if n > 0 {
		e.noteKeys(v, from, from+n-1)
	}
	return n, nil
}

// checkLengths refuses values that no reader would accept.
func checkLengths(v *vector.Vector, from, to int) error {
	w := v
	if v.Dict() != nil {
		w, from, to = v.Dict(), 0, v.Dict().Len()
	}
	if w.Kind() != schema.KindBytes || from >= to {
		return nil
	}
	offsets := w.Offsets()[from : to+1]
	if offsets[to-from]-offsets[0] <= MaxValueBytes {
		return nil
	}
	for i, start := range offsets[:to-from] {
		if n := offsets[i+1] - start; n > MaxValueBytes {
			return &schema.ValueError{Row: -1, Given: fmt.Sprintf("value of %d bytes", n),
				Reason: fmt.Sprintf("at most %d can be stored", MaxValueBytes)}
		}
	}
	return nil
}

// addValues hands rows without nulls to the block until it is full.
func (e *Encoder) addValues(v *vector.Vector, from, to int) int {
	at := from
	for at < to && !e.b.full() {
		k := min(batchRows, to-at)
		n := e.b.add(v, at, at+k)
		at += n
		if n < k {
			break
		}
	}
	return at - from
}

// addNullable hands the non-null rows to the block, a piece at a time.
func (e *Encoder) addNullable(v *vector.Vector, from, to int) int {
	at, dense := from, v.Dense()
	for at < to && !e.Full() {
		end := min(at+1024, to)
		e.picked = appendSet(e.picked[:0], v.Valid(), at, end)
		n := e.addValues(e.pick(dense), 0, len(e.picked))
		if n < len(e.picked) {
			end = int(e.picked[n])
		}
		e.nulls.addBits(v.Valid(), at, end)
		e.rows += end - at
		at = end
	}
	return at - from
}

// pick returns the picked rows of v, which calls none of them null.
func (e *Encoder) pick(v *vector.Vector) *vector.Vector {
	if v.Dict() != nil {
		e.codes = e.codes[:0]
		for _, r := range e.picked {
			e.codes = append(e.codes, uint32(v.Code(int(r))))
		}
		return vector.FromCodes(e.codes, v.Dict(), nil)
	}
	e.scratch.Reset(v.Kind())
	// Rows of one vector, whose offsets are 32 bits, fit another.
	_ = e.scratch.AppendRows(v, e.picked)
	return &e.scratch
}

// appendSet appends the positions of the bits set in [from, to).
func appendSet(dst []int32, b vector.Bitmap, from, to int) []int32 {
	for w := from >> 6; w<<6 < to; w++ {
		word := b[w]
		if w<<6 < from {
			word &= ^uint64(0) << (uint(from) & 63)
		}
		if to < w<<6+64 {
			word &= 1<<(uint(to)&63) - 1
		}
		for ; word != 0; word &= word - 1 {
			dst = append(dst, int32(w<<6+bits.TrailingZeros64(word)))
		}
	}
	return dst
}

func (e *Encoder) noteKeys(v *vector.Vector, first, last int) {
	if !keyCapable(e.o.Kind) {
		return
	}
	if e.rows == last-first+1 {
		e.first = appendCell(e.first[:0], v, first, true)
	}
	e.last = appendCell(e.last[:0], v, last, true)
}

// FirstKey returns the first value of the block as the key of a single-column table,
// valid until the next Add. The block is not empty, the column not nullable and of a
// kind that keys may have.
func (e *Encoder) FirstKey() []byte { return e.first }

// LastKey is as FirstKey for the last value.
func (e *Encoder) LastKey() []byte { return e.last }

// Full reports whether the block should be finished.
func (e *Encoder) Full() bool { return e.rows >= e.o.MaxRows || e.b.full() }

// Rows returns the rows in the block, nulls included.
func (e *Encoder) Rows() int { return e.rows }

// Size estimates the bytes Finish would append.
func (e *Encoder) Size() int {
	if e.o.Nullable {
		return e.b.size() + e.nulls.size() + 10
	}
	return e.b.size()
}

// Finish appends the block to dst. Call Reset before the next Add.
func (e *Encoder) Finish(dst []byte) []byte {
	switch {
	case e.page != nil && e.o.Nullable:
		e.page.nulls = appendNulls(e.page.nulls[:0], e.rows, &e.nulls)
	case e.o.Nullable:
		dst = appendNulls(dst, e.rows, &e.nulls)
	}
	return e.b.finish(dst)
}

// AppendDict appends the dictionary block of a DICT or PAGED column, which holds the
// words of all blocks so far, and reports whether there is one. [DecodeDict] reads it. No
// block may follow.
func (e *Encoder) AppendDict(dst []byte) ([]byte, bool) {
	switch {
	case e.dict == nil:
		return dst, false
	case e.page != nil:
		return e.page.appendWords(dst)
	}
	return e.dict.words.finish(dst), true
}

// DictSize estimates the bytes AppendDict would append, 0 without a dictionary.
func (e *Encoder) DictSize() int {
	if e.dict == nil {
		return 0
	}
	return e.dict.words.size()
}
