package memrowset

import (
	"math"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/delta"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	chunkShift = 13
	chunkRows  = 1 << chunkShift // rows of a chunk
	chunkMask  = chunkRows - 1
	firstRows  = 256 // rows the first chunk starts with; it doubles up to chunkRows
)

// store holds the values of one column in chunks. One goroutine at a time appends;
// readers may use rows published to them at any time, because values do not move: a
// chunk that must grow is replaced by a copy, and readers keep the old one.
type store interface {
	// append writes the picked values of src to rows at, at+1 and so on. The values
	// of nulls are zero.
	append(src *vector.Vector, p pick, at int) error
	// gather appends the values of the given rows to dst, validity left aside.
	gather(dst *vector.Vector, rows []rowset.RowID) error
	// view makes s.vec the values of rows [from, to) of one chunk, with the given
	// validity, over the memory of the store where the layout allows it.
	view(s *slot, from, to int, valid vector.Bitmap)
}

// pick is a choice of rows of a batch.
type pick struct {
	rows []int32 // nil: rows first, first+1, …
	from int
	n    int
}

// part returns n of the picked rows from the i-th on.
func (p pick) part(i, n int) pick {
	if p.rows == nil {
		return pick{from: p.from + i, n: n}
	}
	return pick{rows: p.rows[i : i+n], n: n}
}

// row returns the i-th picked row.
func (p pick) row(i int) int {
	if p.rows == nil {
		return p.from + i
	}
	return int(p.rows[i])
}

// slot is a column of a batch that a scan hands out, and its scratch memory.
type slot struct {
	vec         vector.Vector // as stored
	patched     delta.Overlay // with changes, where there are any
	now         *vector.Vector
	bits, valid vector.Bitmap
	ready       bool
}

// inChunks calls f for each run of rows [at, at+n) that lies in one chunk: i is the
// run's offset from at, k its length.
func inChunks(at, n int, f func(i, k int) error) error {
	for i := 0; i < n; {
		k := min(n-i, chunkRows-(at+i)&chunkMask)
		if err := f(i, k); err != nil {
			return err
		}
		i += k
	}
	return nil
}

// newStore returns an empty store of the kind that charges its memory to mem.
func newStore(kind schema.Kind, mem *atomic.Int64) store {
	switch kind {
	case schema.KindBool:
		return &boolStore{fixedStore[uint8]{kind: schema.KindInt8, mem: mem}}
	case schema.KindBytes:
		return newBytesStore(mem)
	case schema.KindInt8:
		return &fixedStore[uint8]{kind: kind, mem: mem}
	case schema.KindInt16:
		return &fixedStore[uint16]{kind: kind, mem: mem}
	case schema.KindInt128:
		return &fixedStore[schema.Int128]{kind: kind, mem: mem}
	case schema.KindInt32, schema.KindFloat32:
		return &fixedStore[uint32]{kind: kind, mem: mem}
	}
	return &fixedStore[uint64]{kind: kind, mem: mem}
}

// fixedStore holds values of one width.
type fixedStore[T vector.Fixed] struct {
	kind   schema.Kind
	mem    *atomic.Int64
	chunks atomic.Pointer[[][]T] // replaced by the appender; all but the first have chunkRows values
}

func (s *fixedStore[T]) load() [][]T {
	if p := s.chunks.Load(); p != nil {
		return *p
	}
	return nil
}

// reserve makes room for rows [0, n).
func (s *fixedStore[T]) reserve(n int) [][]T {
	if cur := s.load(); n <= capacity(cur) {
		return cur
	}
	return s.grow(n)
}

// grow is the part of reserve for lack of room.
func (s *fixedStore[T]) grow(n int) [][]T {
	cur := s.load()
	before := capacity(cur)
	if first := firstChunk(n); len(cur) == 0 || len(cur[0]) < first {
		grown := make([]T, first)
		if len(cur) > 0 {
			copy(grown, cur[0])
		}
		cur = [][]T{grown}
	}
	for capacity(cur) < n {
		cur = append(cur, make([]T, chunkRows))
	}
	s.chunks.Store(&cur)
	s.mem.Add(int64(capacity(cur)-before) * int64(width[T]()))
	return cur
}

func capacity[T any](chunks [][]T) int {
	if len(chunks) == 0 {
		return 0
	}
	return (len(chunks)-1)*chunkRows + len(chunks[0])
}

// firstChunk returns the size of the first chunk of a store of n rows.
func firstChunk(n int) int {
	size := firstRows
	for size < n && size < chunkRows {
		size *= 2
	}
	return size
}

// at returns the value of one row.
func (s *fixedStore[T]) at(row rowset.RowID) T { return s.load()[row>>chunkShift][row&chunkMask] }

func (s *fixedStore[T]) append(src *vector.Vector, p pick, at int) error {
	chunks, vals := s.reserve(at+p.n), vector.Values[T](src)
	return inChunks(at, p.n, func(i, k int) error {
		out := chunks[(at+i)>>chunkShift][(at+i)&chunkMask:][:k]
		if p.rows == nil {
			copy(out, vals[p.from+i:])
			return nil
		}
		for j, r := range p.rows[i : i+k] {
			out[j] = vals[r]
		}
		return nil
	})
}

// fill sets rows [at, at+n) to x.
func (s *fixedStore[T]) fill(x T, at, n int) {
	chunks := s.reserve(at + n)
	for i := at; i < at+n; i++ {
		chunks[i>>chunkShift][i&chunkMask] = x
	}
}

func (s *fixedStore[T]) gather(dst *vector.Vector, rows []rowset.RowID) error {
	gatherInto(vector.Extend[T](dst, len(rows)), s.load(), rows)
	return nil
}

func gatherInto[T any](out []T, chunks [][]T, rows []rowset.RowID) {
	for k, r := range rows {
		out[k] = chunks[r>>chunkShift][r&chunkMask]
	}
}

func (s *fixedStore[T]) view(d *slot, from, to int, valid vector.Bitmap) {
	vector.Refer(&d.vec, s.kind, s.slice(from, to), valid)
}

// slice returns the values of rows [from, to) of one chunk.
func (s *fixedStore[T]) slice(from, to int) []T {
	i := from & chunkMask
	return s.load()[from>>chunkShift][i : i+to-from : i+to-from]
}

// boolStore holds booleans as bytes, so that published and new rows share no word.
type boolStore struct{ fixedStore[uint8] }

func (s *boolStore) append(src *vector.Vector, p pick, at int) error {
	chunks, bits := s.reserve(at+p.n), src.Bits()
	for i := range p.n {
		var b uint8
		if bits.Get(p.row(i)) {
			b = 1
		}
		chunks[(at+i)>>chunkShift][(at+i)&chunkMask] = b
	}
	return nil
}

func (s *boolStore) gather(dst *vector.Vector, rows []rowset.RowID) error {
	at, chunks := dst.Len(), s.load()
	bits := dst.ExtendBits(len(rows))
	for k, r := range rows {
		if chunks[r>>chunkShift][r&chunkMask] != 0 {
			bits.Set(at + k)
		}
	}
	return nil
}

func (s *boolStore) view(d *slot, from, to int, valid vector.Bitmap) {
	d.bits = pack(d.bits, s.slice(from, to))
	d.vec = *vector.FromBits(d.bits, to-from, valid)
}

// bytesStore holds values of variable length: in each chunk one byte buffer and the
// offsets of the values in it, as Arrow has them.
type bytesStore struct {
	mem    *atomic.Int64
	size   atomic.Int64                 // bytes of all values
	chunks atomic.Pointer[[]bytesChunk] // replaced by the appender, never changed in place
}

type bytesChunk struct {
	offsets []int32 // one more than rows; only entries of rows appended so far are set
	data    []byte
}

func newBytesStore(mem *atomic.Int64) *bytesStore {
	s := &bytesStore{mem: mem}
	s.chunks.Store(new([]bytesChunk))
	return s
}

// at returns the value of one row. It must not be changed.
func (s *bytesStore) at(row rowset.RowID) []byte { return valueAt(*s.chunks.Load(), row) }

func valueAt(chunks []bytesChunk, row rowset.RowID) []byte {
	c, i := &chunks[row>>chunkShift], row&chunkMask
	lo, hi := c.offsets[i], c.offsets[i+1]
	return c.data[lo:hi:hi]
}

func (s *bytesStore) append(src *vector.Vector, p pick, at int) error {
	return inChunks(at, p.n, func(i, k int) error { return s.appendPart(src, p.part(i, k), at+i) })
}

// appendPart appends to one chunk.
func (s *bytesStore) appendPart(src *vector.Vector, p pick, at int) error {
	size := sizeOf(src, p)
	c, err := s.reserve(at, p.n, size)
	if err != nil {
		return err
	}
	s.size.Add(int64(size))
	i := at & chunkMask
	end := c.offsets[i]
	if p.rows == nil && src.Dict() == nil {
		offsets := src.Offsets()[p.from : p.from+p.n+1]
		copy(c.data[end:], src.Data()[offsets[0]:offsets[p.n]])
		for j, o := range offsets[1:] {
			c.offsets[i+1+j] = o - offsets[0] + end
		}
		return nil
	}
	for j := range p.n {
		if r := p.row(j); !src.IsNull(r) {
			end += int32(copy(c.data[end:], src.BytesAt(r)))
		}
		c.offsets[i+1+j] = end
	}
	return nil
}

// sizeOf returns the bytes of the picked values.
func sizeOf(src *vector.Vector, p pick) int {
	if p.rows == nil && src.Dict() == nil {
		return int(src.Offsets()[p.from+p.n] - src.Offsets()[p.from])
	}
	size := 0
	for i := range p.n {
		if r := p.row(i); !src.IsNull(r) {
			size += len(src.BytesAt(r))
		}
	}
	return size
}

// reserve returns the chunk of row at with room for n rows of together size bytes.
func (s *bytesStore) reserve(at, n, size int) (bytesChunk, error) {
	chunks, k, i := *s.chunks.Load(), at>>chunkShift, at&chunkMask
	var c bytesChunk
	if k < len(chunks) {
		c = chunks[k]
	}
	used := 0
	if i > 0 {
		used = int(c.offsets[i])
	}
	if size > math.MaxInt32-used {
		return c, vector.ErrTooLarge
	}
	grown, want := c, chunkRows+1
	if k == 0 {
		want = firstChunk(i+n) + 1
	}
	if len(c.offsets) < want {
		grown.offsets = make([]int32, want)
		copy(grown.offsets, c.offsets)
	}
	if used+size > len(c.data) {
		grown.data = make([]byte, nextSize(chunks[:k], used+size, len(c.data)))
		copy(grown.data, c.data[:used])
	}
	if len(grown.offsets) == len(c.offsets) && len(grown.data) == len(c.data) {
		return c, nil
	}
	s.mem.Add(int64(len(grown.data)-len(c.data)) + 4*int64(len(grown.offsets)-len(c.offsets)))
	next := append(make([]bytesChunk, 0, k+1), chunks[:k]...)
	next = append(next, grown)
	s.chunks.Store(&next)
	return grown, nil
}

// nextSize returns the size of a byte buffer that must hold need bytes and had size:
// at first as much as the chunk before it needed, later growing, the larger the slower.
func nextSize(before []bytesChunk, need, size int) int {
	switch {
	case size == 0 && len(before) > 0:
		size = int(before[len(before)-1].offsets[chunkRows])
		size += size / 16
	case size < 1<<20:
		size *= 2
	default:
		size += size / 4
	}
	return min(max(need, size, 4096), math.MaxInt32)
}

func (s *bytesStore) gather(dst *vector.Vector, rows []rowset.RowID) error {
	chunks, size := *s.chunks.Load(), 0
	for _, r := range rows {
		c, i := &chunks[r>>chunkShift], r&chunkMask
		size += int(c.offsets[i+1] - c.offsets[i])
	}
	ends, data, end, err := dst.ExtendBytes(len(rows), size)
	if err != nil {
		return err
	}
	base := end
	for k, r := range rows {
		end += int32(copy(data[end-base:], valueAt(chunks, r)))
		ends[k] = end
	}
	return nil
}

func (s *bytesStore) view(d *slot, from, to int, valid vector.Bitmap) {
	c, i := (*s.chunks.Load())[from>>chunkShift], from&chunkMask
	d.vec = *vector.FromBytes(c.offsets[i:i+to-from+1], c.data[:c.offsets[i+to-from]], valid)
}
