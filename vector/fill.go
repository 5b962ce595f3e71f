package vector

import (
	"math/bits"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
)

// The functions of this file let decoders write straight into a vector. The vector
// must not be in dictionary form and must have no validity bitmap.

// ExtendFixed appends n values to a fixed-width vector and returns their memory, of
// undefined content, for the caller to fill. See [HostOrder].
func (v *Vector) ExtendFixed(n int) []byte {
	size := n * v.kind.Width()
	v.data = reserve(v.data, size)
	at := len(v.data)
	v.data = v.data[:at+size]
	v.length += n
	return v.data[at:]
}

// ExtendBits appends n false values to a vector of KindBool and returns all its words.
func (v *Vector) ExtendBits(n int) Bitmap {
	v.Reserve(n)
	v.words = growBits(v.words, v.length+n)
	v.length += n
	return v.words
}

// ExtendBytes appends n values of together size bytes to a plain vector of bytes. The
// caller fills data and the end of each value in ends; data starts at base, which
// stands for the end of the value before. It fails, and changes nothing, only when
// the vector would exceed 2 GiB.
func (v *Vector) ExtendBytes(n, size int) (ends []int32, data []byte, base int32, err error) {
	at := len(v.data)
	if size > maxData-at {
		return nil, nil, 0, ErrTooLarge
	}
	v.Reserve(n)
	if cap(v.data)-at < size {
		v.data = append(make([]byte, 0, at+size), v.data...)
	}
	v.data = v.data[:at+size]
	v.offsets = v.offsets[:len(v.offsets)+n]
	v.length += n
	return v.offsets[len(v.offsets)-n:], v.data[at:], int32(at), nil
}

// ResetCodes makes v a vector of n values in dictionary form, with room for capacity,
// with codes of width 1, 2 or 4 bytes, and returns the memory of the codes, of undefined
// content, for the caller to fill. See [HostOrder].
func (v *Vector) ResetCodes(width, n, capacity int, dict *Vector) []byte {
	if v.codeLen == 0 {
		v.data = nil // a byte buffer need not be aligned
	}
	v.Reset(schema.KindBytes)
	v.codeLen, v.dict, v.length = uint8(width), dict, n
	v.data = reserve(v.data, max(n, capacity)*width)[:n*width]
	return v.data
}

// HostOrder turns raw values of the given width from little-endian into the machine's
// byte order, or back. It does nothing on little-endian machines.
func HostOrder(b []byte, width int) {
	if !littleEndian {
		swapWords(b, min(width, 8)) // 128 bits are two words, the low one first on every machine
	}
}

// Spread turns the v.Len() values into n cells of which those in valid, as many as
// there are values, hold them in order and the others are null. v takes valid over;
// when all n are set it is left out.
func (v *Vector) Spread(valid Bitmap, n int) {
	k := v.length
	if k == n {
		return
	}
	if v.dict == nil {
		v.Reserve(n - k)
	}
	v.length = n
	switch {
	case v.kind == schema.KindBool:
		v.words = spreadBits(growBits(v.words, n), valid, k, n)
	case v.dict != nil:
		v.data = spreadFixed(v.data, int(v.codeLen), valid, k, n)
	case v.kind == schema.KindBytes:
		v.offsets = spreadOffsets(v.offsets, valid, k, n)
	default:
		v.data = spreadFixed(v.data, v.kind.Width(), valid, k, n)
	}
	v.valid = valid
}

// spreadFixed moves k values from the front to the places of the set bits.
func spreadFixed(data []byte, width int, valid Bitmap, k, n int) []byte {
	data = reserve(data, (n-k)*width)[:n*width]
	switch width {
	case 1:
		kernel.Spread(view[uint8](data, n), valid, k)
	case 2:
		kernel.Spread(view[uint16](data, n), valid, k)
	case 4:
		kernel.Spread(view[uint32](data, n), valid, k)
	case 8:
		kernel.Spread(view[uint64](data, n), valid, k)
	default:
		kernel.Spread(view[schema.Int128](data, n), valid, k)
	}
	return data
}

func spreadBits(b, valid Bitmap, k, n int) Bitmap {
	for w := Words(n) - 1; w >= 0; w-- {
		k -= bits.OnesCount64(valid[w])
		b[w] = kernel.Deposit(b.extract(k), valid[w])
	}
	return b
}

func spreadOffsets(offsets []int32, valid Bitmap, k, n int) []int32 {
	offsets = offsets[:n+1]
	for i := n - 1; i >= 0; i-- {
		offsets[i+1] = offsets[k]
		if valid.Get(i) {
			k--
		}
	}
	return offsets
}

// Dense returns a vector that shares the values of v and calls none of them null.
func (v *Vector) Dense() *Vector {
	d := *v
	d.valid = nil
	return &d
}
