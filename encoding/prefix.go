package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// prefixBuilder builds PREFIX blocks: each value is stored as the length it shares
// with the one before and the rest.
type prefixBuilder struct {
	limit, interval int
	ordinal         uint32
	n               int
	entries         []byte
	restarts        []uint32 // from the start of the entries
	prev            []byte
}

func (b *prefixBuilder) reset(ordinal uint32) {
	b.ordinal, b.n, b.entries, b.restarts, b.prev = ordinal, 0, b.entries[:0], b.restarts[:0], b.prev[:0]
}

func (b *prefixBuilder) full() bool { return len(b.entries) > b.limit }
func (b *prefixBuilder) count() int { return b.n }
func (b *prefixBuilder) size() int  { return len(b.entries) + 4*len(b.restarts) + 21 }

func (b *prefixBuilder) add(v *vector.Vector, from, to int) int {
	i := from
	for ; i < to && !b.full(); i++ {
		b.addOne(v.BytesAt(i))
	}
	return i - from
}

func (b *prefixBuilder) addOne(s []byte) {
	shared := 0
	if b.n%b.interval != 0 {
		shared = sharedPrefix(b.prev, s)
	} else if b.n > 0 {
		b.restarts = append(b.restarts, uint32(len(b.entries)))
	}
	b.entries = binary.AppendUvarint(b.entries, uint64(shared))
	b.entries = binary.AppendUvarint(b.entries, uint64(len(s)-shared))
	b.entries = append(b.entries, s[shared:]...)
	b.prev = append(b.prev[:shared], s[shared:]...)
	b.n++
}

func sharedPrefix(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func (b *prefixBuilder) finish(dst []byte) []byte {
	at := len(dst)
	dst = appendGroup(dst, [4]uint32{uint32(b.n), b.ordinal, uint32(b.interval), 0})
	header := uint32(len(dst) - at)
	dst = append(dst, b.entries...)
	for _, r := range b.restarts {
		dst = binary.LittleEndian.AppendUint32(dst, header+r)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(len(b.restarts)))
}

// prefixBlock is a PREFIX block cut into its parts.
type prefixBlock struct {
	count    int
	ordinal  uint32
	interval uint64
	header   int // bytes before the entries
	entries  []byte
	restarts []byte // fixed32 each
}

func (d *decoder) prefix(dst *vector.Vector, block []byte) (Header, error) {
	p, err := d.cutPrefix(block)
	if err != nil {
		return Header{}, err
	}
	size, err := p.measure(d)
	if err != nil {
		return Header{}, err
	}
	ends, data, base, err := dst.ExtendBytes(p.count, size)
	if err != nil {
		return Header{}, err
	}
	p.fill(ends, data, base)
	return Header{p.ordinal, p.count}, nil
}

func (d *decoder) cutPrefix(block []byte) (p prefixBlock, err error) {
	g, header := readGroup(block)
	if header == 0 || len(block) < header+4 {
		return p, vfs.Corruptf("block of %d bytes is shorter than its header", len(block))
	}
	n, interval := uint64(g[0]), uint64(g[2])
	if interval == 0 {
		return p, vfs.Corruptf("restart interval 0")
	}
	body, tail := block[header:len(block)-4], block[len(block)-4:]
	r := uint64(binary.LittleEndian.Uint32(tail))
	if r > uint64(len(body))/4 {
		return p, vfs.Corruptf("%d restarts in %d bytes", r, len(body))
	}
	if want := (max(n, 1) - 1) / interval; r != want {
		return p, vfs.Corruptf("%d restarts, want %d", r, want)
	}
	cut := len(body) - 4*int(r)
	p = prefixBlock{ordinal: g[1], interval: interval, header: header, entries: body[:cut], restarts: body[cut:]}
	if n > uint64(cut)/2 {
		return p, vfs.Corruptf("%d values in %d bytes", n, cut)
	}
	p.count = int(n)
	return p, d.check(n, 4*n)
}

// measure validates every entry and returns the bytes of all values.
func (p *prefixBlock) measure(d *decoder) (int, error) {
	var total, prev uint64 // prev is the length of the value before
	src, next := p.entries, uint64(0)
	for i := range p.count {
		if uint64(i) == next {
			if err := p.checkRestart(i, len(p.entries)-len(src)); err != nil {
				return 0, err
			}
			prev, next = 0, next+p.interval
		}
		shared, suffix, n := readEntry(src)
		if n == 0 || suffix > uint64(len(src)-n) {
			return 0, vfs.Corruptf("value %d does not end in the block", i)
		}
		if shared > prev {
			return 0, vfs.Corruptf("value %d shares %d bytes of %d", i, shared, prev)
		}
		src = src[n+int(suffix):]
		prev = shared + suffix
		total += prev
		if err := d.check(uint64(p.count), total+4*uint64(p.count)); err != nil {
			return 0, err
		}
	}
	if len(src) != 0 {
		return 0, vfs.Corruptf("%d bytes after the last value", len(src))
	}
	return int(total), nil
}

// checkRestart checks that the entry at the given place is the listed restart. The
// first entry is a restart that is not listed.
func (p *prefixBlock) checkRestart(i, at int) error {
	if i == 0 {
		return nil
	}
	k := uint64(i)/p.interval - 1
	if got := binary.LittleEndian.Uint32(p.restarts[4*k:]); uint64(got) != uint64(p.header+at) {
		return vfs.Corruptf("restart %d at byte %d, listed at %d", k, p.header+at, got)
	}
	return nil
}

// fill writes the values of a measured block.
func (p *prefixBlock) fill(ends []int32, data []byte, base int32) {
	src, prev, at := p.entries, 0, 0 // prev and at are where the value before and this one start
	for i := range ends {
		shared, suffix, n := readEntry(src)
		end := at + int(shared) + int(suffix)
		copy(data[at:end], data[prev:prev+int(shared)])
		copy(data[at+int(shared):end], src[n:])
		src = src[n+int(suffix):]
		prev, at = at, end
		ends[i] = base + int32(end)
	}
}

// readEntry returns the two lengths before a suffix and their bytes, 0 when damaged.
func readEntry(src []byte) (shared, suffix uint64, n int) {
	if len(src) >= 2 && src[0]|src[1] < 0x80 {
		return uint64(src[0]), uint64(src[1]), 2
	}
	shared, n = uvarint32(src)
	if n == 0 {
		return 0, 0, 0
	}
	suffix, m := uvarint32(src[n:])
	if m == 0 {
		return 0, 0, 0
	}
	return shared, suffix, n + m
}

// uvarint32 returns a 32-bit varint and its length, 0 when it is cut or too large.
func uvarint32(src []byte) (v uint64, n int) {
	for i, b := range src[:min(5, len(src))] {
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if v > 1<<32-1 {
				return 0, 0
			}
			return v, i + 1
		}
	}
	return 0, 0
}
