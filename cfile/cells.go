package cfile

import (
	"context"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/vector"
)

// ReadCells is ReadPage for a reader of a few cells: a page in whose encoding cells can be
// read one by one is not decoded. It returns one of the two, with the same checks as
// ReadPage, but for numbers of words out of range, which are found when they are read.
func (r *Reader) ReadCells(ctx context.Context, idx *PageIndex, page int) (*vector.Vector, *encoding.Packed, error) {
	s := getScratch()
	defer s.put()
	payload, err := r.readBlock(ctx, s, idx.ptr(page), partData)
	if err != nil {
		return nil, nil, err
	}
	if p, err := r.openPage(ctx, payload, idx, page); p != nil || err != nil {
		return nil, p, err
	}
	v, err := r.decodePage(ctx, payload, idx, page)
	return v, nil, err
}

// openPage is decodePage without decoding; nil for a page that must be decoded.
func (r *Reader) openPage(ctx context.Context, payload []byte, idx *PageIndex, page int) (*encoding.Packed, error) {
	if err := r.checkRows(idx, page); err != nil {
		return nil, err
	}
	dict, err := r.dictionary(ctx)
	if err != nil {
		return nil, err
	}
	from, to := idx.PageRows(page)
	p, h, err := encoding.DecodePacked(payload, r.format(), dict, r.limits(to-from))
	if err != nil {
		at := idx.ptr(page)
		return nil, r.damaged(partData, at.Offset, int64(at.Size), err)
	}
	if p == nil {
		return nil, nil
	}
	if err := r.checkPlace(h, idx, page); err != nil {
		return nil, err
	}
	return p, nil
}
