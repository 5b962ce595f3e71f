package cfile

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sort"
	"sync"
	"weak"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// ReadPage reads a page with one call of the source, verifies its checksum,
// decompresses and decodes it. The vector shares no memory with the reader, except for
// the words of a page in dictionary form, which all pages of the file share.
func (r *Reader) ReadPage(ctx context.Context, idx *PageIndex, page int) (*vector.Vector, error) {
	s := getScratch()
	defer s.put()
	p := idx.ptr(page)
	payload, err := r.readBlock(ctx, s, p, partData)
	if err != nil {
		return nil, err
	}
	return r.decodePage(ctx, payload, idx, page)
}

// decodePage decodes the payload of a page and checks its place against the index.
func (r *Reader) decodePage(ctx context.Context, payload []byte, idx *PageIndex, page int) (*vector.Vector, error) {
	if err := r.checkRows(idx, page); err != nil {
		return nil, err
	}
	from, to := idx.PageRows(page)
	v, h, err := r.decode(ctx, payload, idx.ptr(page), to-from)
	if err == nil {
		err = r.checkPlace(h, idx, page)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// checkRows refuses a page that cannot be decoded within MaxPageBytes.
func (r *Reader) checkRows(idx *PageIndex, page int) error {
	from, to := idx.PageRows(page)
	if leastBytes(r.footer.Type.Kind(), to-from) > int64(r.opts.MaxPageBytes) {
		p := idx.ptr(page)
		return r.damaged(partData, p.Offset, int64(p.Size), ErrPageTooLarge)
	}
	return nil
}

// checkPlace compares what a page says of itself with the index.
func (r *Reader) checkPlace(h encoding.Header, idx *PageIndex, page int) error {
	p := idx.ptr(page)
	from, to := idx.PageRows(page)
	if int64(h.Ordinal) != from || int64(h.Rows) != to-from {
		return r.damaged(partData, p.Offset, int64(p.Size),
			fmt.Errorf("%d rows from row %d, want %d from %d", h.Rows, h.Ordinal, to-from, from))
	}
	return nil
}

// leastBytes returns the least memory that a vector of so many rows takes.
func leastBytes(kind schema.Kind, rows int64) int64 {
	switch kind {
	case schema.KindBool:
		return rows / 8
	case schema.KindBytes:
		return rows // codes of a byte
	}
	return rows * int64(kind.Width())
}

// decode decodes the payload of the data block at p, which may hold at most rows rows.
func (r *Reader) decode(ctx context.Context, payload []byte, p BlockPtr, rows int64) (*vector.Vector, encoding.Header, error) {
	dict, err := r.dictionary(ctx)
	if err != nil {
		return nil, encoding.Header{}, err
	}
	v := &vector.Vector{}
	h, err := encoding.Decode(v, payload, r.format(), dict, r.limits(rows))
	if err != nil {
		return nil, h, r.damaged(partData, p.Offset, int64(p.Size), err)
	}
	return v, h, nil
}

// limits returns the limits of a page that may hold at most rows rows.
func (r *Reader) limits(rows int64) encoding.Limits {
	return encoding.Limits{Rows: int(min(max(rows, 1), math.MaxInt32)), Bytes: r.opts.MaxPageBytes}
}

func (r *Reader) format() encoding.Format {
	return encoding.Format{Kind: r.footer.Type.Kind(), Encoding: r.footer.Encoding, Nullable: r.footer.Nullable}
}

// words is the dictionary of a file. Pages in use keep it alive; a reader alone does
// not, so that idle readers hold none.
type words struct {
	mu  sync.Mutex
	ptr weak.Pointer[vector.Vector]
}

func (w *words) get() *vector.Vector {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ptr.Value()
}

// put offers a dictionary and returns the one to use.
func (w *words) put(v *vector.Vector) *vector.Vector {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.ptr.Value(); old != nil {
		return old
	}
	w.ptr = weak.Make(v)
	return v
}

// dictionary returns the words of a dictionary-encoded file, nil for any other.
func (r *Reader) dictionary(ctx context.Context) (*vector.Vector, error) {
	p := r.footer.Dictionary
	if p.IsZero() {
		return nil, nil
	}
	if v := r.words.get(); v != nil {
		return v, nil
	}
	s := getScratch()
	defer s.put()
	payload, err := r.readBlock(ctx, s, p, partDictionary)
	if err != nil {
		return nil, err
	}
	v, err := encoding.DecodeDict(payload, r.footer.Encoding, encoding.Limits{Bytes: r.opts.MaxPageBytes})
	if err != nil {
		return nil, r.damaged(partDictionary, p.Offset, int64(p.Size), err)
	}
	return r.words.put(v), nil
}

// AppendRange appends rows [from, to) to dst, a vector of the column's kind that is
// not in dictionary form.
func (r *Reader) AppendRange(ctx context.Context, idx *PageIndex, from, to int64, dst *vector.Vector) error {
	if from < 0 || to > idx.Rows() || from > to {
		return fmt.Errorf("%s: rows [%d, %d) of %d: %w", r.opts.Path, from, to, idx.Rows(), schema.ErrInvalidArgument)
	}
	for from < to {
		page := idx.PageOf(from)
		start, end := idx.PageRows(page)
		v, err := r.ReadPage(ctx, idx, page)
		if err != nil {
			return err
		}
		stop := min(to, end)
		if err := dst.AppendRange(v, int(from-start), int(stop-start)); err != nil {
			return err
		}
		from = stop
	}
	return nil
}

// indexFromPages builds the page index of a file that has only a value index.
func (r *Reader) indexFromPages(ctx context.Context) (*PageIndex, error) {
	x := &PageIndex{}
	next := int64(0)
	s := getScratch()
	defer s.put()
	err := r.walkValue(ctx, func(e indexEntry) error {
		payload, err := r.readBlock(ctx, s, e.ptr, partData)
		if err != nil {
			return err
		}
		_, h, err := r.decode(ctx, payload, e.ptr, r.footer.Rows-next)
		if err != nil {
			return err
		}
		if int64(h.Ordinal) != next || h.Rows == 0 {
			return r.damaged(partData, e.ptr.Offset, int64(e.ptr.Size), fmt.Errorf("%d rows from row %d, want from %d", h.Rows, h.Ordinal, next))
		}
		x.add(h.Ordinal, e.ptr)
		next += int64(h.Rows)
		return nil
	}, nil)
	if err == nil && next != r.footer.Rows {
		err = r.damaged(partValue, r.footer.Value.Offset, int64(r.footer.Value.Size), fmt.Errorf("%d rows, want %d", next, r.footer.Rows))
	}
	x.Starts = append(x.Starts, uint32(next))
	return x, err
}

// SeekKey returns the first row whose encoded key is at or after key, and whether it is
// equal; Rows when there is none. The file needs a value index.
func (r *Reader) SeekKey(ctx context.Context, key []byte) (row int64, exact bool, err error) {
	if r.footer.Value.IsZero() {
		return 0, false, r.noValueIndex()
	}
	if r.footer.Rows == 0 {
		return 0, false, nil
	}
	p, err := r.findPage(ctx, key)
	if err != nil {
		return 0, false, err
	}
	s := getScratch()
	defer s.put()
	payload, err := r.readBlock(ctx, s, p, partData)
	if err != nil {
		return 0, false, err
	}
	v, h, err := r.decode(ctx, payload, p, r.footer.Rows)
	if err != nil {
		return 0, false, err
	}
	if int64(h.Ordinal) > r.footer.Rows-int64(h.Rows) {
		return 0, false, r.damaged(partData, p.Offset, int64(p.Size), fmt.Errorf("%d rows from row %d of %d", h.Rows, h.Ordinal, r.footer.Rows))
	}
	pos, exact := SearchPage(v, key)
	return int64(h.Ordinal) + int64(pos), exact, nil
}

// findPage descends the value index to the page in which a search for key begins.
func (r *Reader) findPage(ctx context.Context, key []byte) (BlockPtr, error) {
	s := getScratch()
	defer s.put()
	p := r.footer.Value
	var first []byte // key of the block in its parent
	for range maxDepth + 1 {
		b, _, err := r.readIndexBlock(ctx, s, p, first, partValue)
		if err != nil {
			return BlockPtr{}, err
		}
		if len(b.entries) == 0 {
			return BlockPtr{}, r.damaged(partValue, p.Offset, int64(p.Size), fmt.Errorf("no pages for %d rows", r.footer.Rows))
		}
		e := b.entries[max(b.search(key), 0)]
		if err := r.checkExtent(e.ptr, p.Offset); err != nil {
			return BlockPtr{}, r.damaged(partValue, p.Offset, int64(p.Size), err)
		}
		if b.leaf {
			return e.ptr, nil
		}
		p, first = e.ptr, append([]byte{}, e.key...)
	}
	return BlockPtr{}, r.damaged(partValue, p.Offset, int64(p.Size), fmt.Errorf("more than %d levels", maxDepth))
}

// SearchPage returns the position of the first cell of a decoded page, ascending and
// without nulls, whose encoded key is at or after key, and whether it is equal; Len
// when there is none.
func SearchPage(page *vector.Vector, key []byte) (pos int, exact bool) {
	buf := make([]byte, 0, 16)
	compare := func(i int) int {
		if page.Kind() == schema.KindBytes {
			return bytes.Compare(page.BytesAt(i), key)
		}
		buf = encoding.AppendKeyCell(buf[:0], page.Value(i), true)
		return bytes.Compare(buf, key)
	}
	pos = sort.Search(page.Len(), func(i int) bool { return compare(i) >= 0 })
	return pos, pos < page.Len() && compare(pos) == 0
}
