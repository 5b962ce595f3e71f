package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// keyCapable reports whether values of the kind may be part of a key.
func keyCapable(k schema.Kind) bool { return k == schema.KindBytes || k.IsInteger() }

// AppendKeyCell appends the key form of one cell; last says that it belongs to the last
// key column. The value is not null and of a kind that keys may have; anything else is a
// bug of the caller and panics.
func AppendKeyCell(dst []byte, v schema.Value, last bool) []byte {
	switch v.Kind() {
	case schema.KindBytes:
		s := v.Str()
		return appendKeyBytes(dst, unsafe.Slice(unsafe.StringData(s), len(s)), last)
	case schema.KindInt128:
		return appendKey128(dst, v.Int128())
	case schema.KindInt8, schema.KindInt16, schema.KindInt32, schema.KindInt64:
		w := v.Kind().Width()
		u := uint64(v.Int()) ^ 1<<(8*w-1)
		for shift := 8 * (w - 1); shift >= 0; shift -= 8 {
			dst = append(dst, byte(u>>shift))
		}
		return dst
	}
	panic(fmt.Sprintf("encoding: a value of kind %s cannot be part of a key", v.Kind()))
}

func appendKey128(dst []byte, v schema.Int128) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.Hi)^1<<63)
	return binary.BigEndian.AppendUint64(dst, v.Lo)
}

func appendKeyBytes(dst, s []byte, last bool) []byte {
	if last {
		return append(dst, s...)
	}
	for {
		i := bytes.IndexByte(s, 0)
		if i < 0 {
			return append(append(dst, s...), 0, 0)
		}
		dst = append(append(dst, s[:i+1]...), 1)
		s = s[i+1:]
	}
}

// appendCell appends the key form of value i of a vector without nulls.
func appendCell(dst []byte, v *vector.Vector, i int, last bool) []byte {
	switch v.Kind() {
	case schema.KindBytes:
		return appendKeyBytes(dst, v.BytesAt(i), last)
	case schema.KindInt8:
		return append(dst, vector.Values[uint8](v)[i]^1<<7)
	case schema.KindInt16:
		return binary.BigEndian.AppendUint16(dst, vector.Values[uint16](v)[i]^1<<15)
	case schema.KindInt32:
		return binary.BigEndian.AppendUint32(dst, vector.Values[uint32](v)[i]^1<<31)
	case schema.KindInt64:
		return binary.BigEndian.AppendUint64(dst, vector.Values[uint64](v)[i]^1<<63)
	case schema.KindInt128:
		return appendKey128(dst, vector.Values[schema.Int128](v)[i])
	}
	panic(fmt.Sprintf("encoding: a value of kind %s cannot be part of a key", v.Kind()))
}

// AppendKey appends the key of one row. cols are the key columns in key order, without
// nulls.
func AppendKey(dst []byte, cols []*vector.Vector, row int) []byte {
	for c, v := range cols {
		dst = appendCell(dst, v, row, c == len(cols)-1)
	}
	return dst
}

// AppendKeyValues appends a key of which only the first len(vals) of full columns are
// given: a prefix of the keys of the rows that have these values. For the rules of each
// value see [AppendKeyCell].
func AppendKeyValues(dst []byte, vals []schema.Value, full int) []byte {
	for i, v := range vals {
		dst = AppendKeyCell(dst, v, i == full-1)
	}
	return dst
}

// AppendKeys appends the keys of rows [from, to) to dst, a plain vector of bytes without
// nulls. cols are as for [AppendKey]. It fails when dst would exceed 2 GiB or a column
// cannot be part of a key, and then leaves dst as it was.
func AppendKeys(dst *vector.Vector, cols []*vector.Vector, from, to int) error {
	if from >= to {
		return nil
	}
	var few [8]keyPlan
	total, plans, err := planKeys(few[:0], cols, from, to)
	if err != nil {
		return err
	}
	if total > math.MaxInt32 {
		return vector.ErrTooLarge
	}
	ends, data, base, err := dst.ExtendBytes(to-from, int(total))
	if err != nil {
		return err
	}
	startKeys(ends, plans, from)
	for c := range plans {
		plans[c].write(ends, data, from)
	}
	if base != 0 {
		for i := range ends {
			ends[i] += base
		}
	}
	return nil
}

// keyPlan is how one column goes into a batch of keys.
type keyPlan struct {
	v      *vector.Vector
	width  int // of a fixed-width column
	last   bool
	escape bool // bytes, not last, and some may be zero or the column is in dictionary form
}

// planKeys appends a plan for each column to plans and returns the bytes of all keys of
// rows [from, to).
func planKeys(plans []keyPlan, cols []*vector.Vector, from, to int) (total int64, _ []keyPlan, err error) {
	for c, v := range cols {
		if !keyCapable(v.Kind()) {
			return 0, nil, fmt.Errorf("a %s column cannot be part of a key: %w", v.Kind(), schema.ErrInvalidArgument)
		}
		p := keyPlan{v: v, width: v.Kind().Width(), last: c == len(cols)-1}
		if p.width > 0 {
			total += int64(p.width) * int64(to-from)
		} else {
			total += p.measure(from, to)
		}
		plans = append(plans, p)
	}
	return total, plans, nil
}

// measure decides how a column of bytes is written and returns its bytes.
func (p *keyPlan) measure(from, to int) (total int64) {
	if !p.last {
		total = 2 * int64(to-from)
	}
	if p.v.Dict() == nil {
		lo, hi := p.v.Offsets()[from], p.v.Offsets()[to]
		total += int64(hi - lo)
		if !p.last {
			zeros := bytes.Count(p.v.Data()[lo:hi], zero)
			p.escape = zeros > 0
			total += int64(zeros)
		}
		return total
	}
	p.escape = true
	for i := from; i < to; i++ {
		total += int64(p.plainLen(i))
	}
	return total
}

var zero = []byte{0}

// plainLen returns the length of value i, escaped but without terminator.
func (p *keyPlan) plainLen(i int) int {
	s := p.v.BytesAt(i)
	if p.last {
		return len(s)
	}
	return len(s) + bytes.Count(s, zero)
}

// startKeys sets starts to where each key begins.
func startKeys(starts []int32, plans []keyPlan, from int) {
	fixed := int32(0)
	for c := range plans {
		if p := &plans[c]; p.width > 0 {
			fixed += int32(p.width)
		} else if !p.last {
			fixed += 2
		}
	}
	for i := range starts {
		starts[i] = int32(i) * fixed
	}
	for c := range plans {
		if p := &plans[c]; p.width == 0 {
			p.shift(starts, from)
		}
	}
}

// shift moves the start of each key by the bytes of the values before it.
func (p *keyPlan) shift(starts []int32, from int) {
	if !p.escape && p.v.Dict() == nil {
		offsets := p.v.Offsets()[from:]
		base := offsets[0]
		for i := range starts {
			starts[i] += offsets[i] - base
		}
		return
	}
	sum := int32(0)
	for i := range starts {
		starts[i] += sum
		sum += int32(p.plainLen(from + i))
	}
}

// write puts the cells of the column at their places in data and moves each place
// behind the cell.
func (p *keyPlan) write(at []int32, data []byte, from int) {
	switch p.v.Kind() {
	case schema.KindInt8:
		for i, x := range vector.Values[uint8](p.v)[from : from+len(at)] {
			data[at[i]] = x ^ 1<<7
			at[i]++
		}
	case schema.KindInt16:
		for i, x := range vector.Values[uint16](p.v)[from : from+len(at)] {
			binary.BigEndian.PutUint16(data[at[i]:], x^1<<15)
			at[i] += 2
		}
	case schema.KindInt32:
		for i, x := range vector.Values[uint32](p.v)[from : from+len(at)] {
			binary.BigEndian.PutUint32(data[at[i]:], x^1<<31)
			at[i] += 4
		}
	case schema.KindInt64:
		for i, x := range vector.Values[uint64](p.v)[from : from+len(at)] {
			binary.BigEndian.PutUint64(data[at[i]:], x^1<<63)
			at[i] += 8
		}
	case schema.KindInt128:
		for i, x := range vector.Values[schema.Int128](p.v)[from : from+len(at)] {
			binary.BigEndian.PutUint64(data[at[i]:], uint64(x.Hi)^1<<63)
			binary.BigEndian.PutUint64(data[at[i]+8:], x.Lo)
			at[i] += 16
		}
	default:
		p.writeBytes(at, data, from)
	}
}

func (p *keyPlan) writeBytes(at []int32, data []byte, from int) {
	if p.escape {
		for i := range at {
			key := appendKeyBytes(data[:at[i]], p.v.BytesAt(from+i), p.last)
			at[i] = int32(len(key))
		}
		return
	}
	offsets, src := p.v.Offsets()[from:from+len(at)+1], p.v.Data()
	for i := range at {
		end := at[i] + int32(copy(data[at[i]:], src[offsets[i]:offsets[i+1]]))
		if !p.last {
			data[end], data[end+1] = 0, 0
			end += 2
		}
		at[i] = end
	}
}

// DecodeKey returns the values of the key columns of s that key stands for. Errors
// answer errors.Is(err, vfs.ErrCorruption).
func DecodeKey(s *schema.Schema, key []byte) ([]schema.Value, error) {
	vals := make([]schema.Value, s.NumKey())
	for c := range vals {
		v, rest, err := DecodeKeyCell(s.Column(c).Kind(), key, c == len(vals)-1)
		if err != nil {
			return nil, fmt.Errorf("key column %q: %w", s.Column(c).Name, err)
		}
		vals[c], key = v, rest
	}
	if len(key) != 0 {
		return nil, vfs.Corruptf("%d bytes after the key", len(key))
	}
	return vals, nil
}

// DecodeKeyCell is the inverse of [AppendKeyCell] for a cell of the given kind at the
// start of key, and returns what follows it.
func DecodeKeyCell(kind schema.Kind, key []byte, last bool) (v schema.Value, rest []byte, err error) {
	w := kind.Width()
	switch {
	case kind == schema.KindBytes && last:
		return schema.BytesValue(key), nil, nil
	case kind == schema.KindBytes:
		return decodeKeyBytes(key)
	case !kind.IsInteger():
		return v, nil, fmt.Errorf("a %s column cannot be part of a key: %w", kind, schema.ErrInvalidArgument)
	case len(key) < w:
		return v, nil, vfs.Corruptf("key has %d bytes left for a cell of %d", len(key), w)
	case kind == schema.KindInt128:
		hi, lo := binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[8:])
		return schema.Int128Value(schema.Int128{Lo: lo, Hi: int64(hi ^ 1<<63)}), key[16:], nil
	}
	var u uint64
	for _, b := range key[:w] {
		u = u<<8 | uint64(b)
	}
	unused := 64 - 8*w
	n := int64((u^1<<(8*w-1))<<unused) >> unused
	return schema.IntValue(kind, n), key[w:], nil
}

// decodeKeyBytes decodes an escaped string and its terminator.
func decodeKeyBytes(key []byte) (v schema.Value, rest []byte, err error) {
	var out []byte
	for {
		i := bytes.IndexByte(key, 0)
		if i < 0 || i+1 == len(key) {
			return v, nil, vfs.Corruptf("string in a key is not ended")
		}
		escape := key[i+1]
		switch {
		case escape > 1:
			return v, nil, vfs.Corruptf("byte %02x after a zero in a key", escape)
		case escape == 0 && out == nil:
			return schema.BytesValue(key[:i]), key[i+2:], nil
		case escape == 0:
			return schema.BytesValue(append(out, key[:i]...)), key[i+2:], nil
		}
		out, key = append(out, key[:i+1]...), key[i+2:]
	}
}
