package cfile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
)

// BlockKind says what a part of a file is.
type BlockKind uint8

// The parts of a file.
const (
	BlockHeader BlockKind = iota
	BlockData
	BlockDictionary
	BlockPositional
	BlockValue
	BlockFooter
)

var blockKinds = [...]string{BlockHeader: partHeader, BlockData: partData, BlockDictionary: partDictionary,
	BlockPositional: partPositional, BlockValue: partValue, BlockFooter: partFooter}

// String returns the part's name.
func (k BlockKind) String() string {
	if int(k) < len(blockKinds) {
		return blockKinds[k]
	}
	return fmt.Sprintf("part(%d)", uint8(k))
}

// BlockInfo describes one part of a file.
type BlockInfo struct {
	Kind        BlockKind
	Offset      int64 // in the source
	Size        int64 // on disk, checksum included
	PlainSize   int64 // of the payload after decompression
	Stored      bool  // the payload is not compressed
	Encoding    schema.Encoding
	Compression schema.Compression
	FirstRow    int64 // data blocks
	Rows        int64 // data blocks; of the whole file for the footer
	Entries     int   // index blocks; words of the dictionary; pairs of header and footer
	Level       int   // index blocks: 0 for leaves
}

// Walk reads every block, checks its checksum and the indexes as a whole, and then
// calls fn for every part of the file in file order, until fn returns an error. It
// decodes no page of a file with a positional index.
func (r *Reader) Walk(ctx context.Context, fn func(BlockInfo) error) error {
	s, err := r.survey(ctx, func(*survey, int, []byte) error { return nil })
	if err != nil {
		return err
	}
	for i := range s.blocks {
		s.blocks[i].Offset += r.base
		if err := fn(s.blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

// survey is what a complete reading of a file finds.
type survey struct {
	blocks []BlockInfo // in file order, offsets relative to the start of the file
	idx    *PageIndex
	keys   *KeyIndex // nil without a value index
}

// pageFunc is given the payload of a page, valid during the call, and the survey, of
// which only the indexes are complete.
type pageFunc func(s *survey, page int, payload []byte) error

// survey reads the indexes, the dictionary and every page, whose payload it passes to
// page, and checks that the blocks fill the file.
func (r *Reader) survey(ctx context.Context, page pageFunc) (*survey, error) {
	s := &survey{}
	s.add(BlockInfo{Kind: BlockHeader, Size: r.dataStart, Stored: true, Entries: len(r.header)})
	s.add(BlockInfo{Kind: BlockFooter, Offset: r.dataEnd, Size: r.length - r.dataEnd, Stored: true,
		Encoding: r.footer.Encoding, Compression: r.footer.Compression, Rows: r.footer.Rows, Entries: len(r.footer.Metadata)})
	if err := r.surveyIndexes(ctx, s); err != nil {
		return nil, err
	}
	if err := r.surveyPages(ctx, s, page); err != nil {
		return nil, err
	}
	slices.SortFunc(s.blocks, func(a, b BlockInfo) int { return cmp.Compare(a.Offset, b.Offset) })
	return s, r.checkFilled(s.blocks)
}

func (s *survey) add(b BlockInfo) { s.blocks = append(s.blocks, b) }

func (r *Reader) surveyIndexes(ctx context.Context, s *survey) (err error) {
	node := func(kind BlockKind) func(indexNode) error {
		return func(n indexNode) error {
			s.add(BlockInfo{Kind: kind, Offset: n.ptr.Offset, Size: int64(n.ptr.Size), PlainSize: int64(n.plain),
				Stored: n.stored, Compression: r.footer.Compression, Entries: n.entries, Level: n.level})
			return nil
		}
	}
	if s.idx, err = r.loadIndex(ctx, node(BlockPositional)); err != nil || r.footer.Value.IsZero() {
		return err
	}
	s.keys, err = r.loadKeyIndex(ctx, s.idx, node(BlockValue))
	return err
}

// page takes what the payload of a PAGED file says of itself.
func (b *BlockInfo) page(payload []byte, kind schema.Kind) error {
	h, err := encoding.PageInfo(payload, kind)
	b.Encoding, b.Compression, b.PlainSize = h.Encoding, h.Compression, int64(h.PlainSize)
	b.Stored = h.Compression == schema.CompressionNone
	return err
}

func (r *Reader) surveyPages(ctx context.Context, s *survey, page pageFunc) error {
	buf := getScratch()
	defer buf.put()
	read := func(kind BlockKind, p BlockPtr) ([]byte, error) {
		payload, err := r.readBlock(ctx, buf, p, kind.String())
		b := BlockInfo{Kind: kind, Offset: p.Offset, Size: int64(p.Size), PlainSize: int64(len(payload)),
			Stored: buf.stored, Encoding: r.footer.Encoding, Compression: r.footer.Compression}
		if err == nil && b.Encoding == schema.EncodingPaged {
			err = r.damaged(kind.String(), p.Offset, int64(p.Size), b.page(payload, r.footer.Type.Kind()))
		}
		s.add(b)
		return payload, err
	}
	if p := r.footer.Dictionary; !p.IsZero() {
		if _, err := read(BlockDictionary, p); err != nil {
			return err
		}
		dict, err := r.dictionary(ctx)
		if err != nil {
			return err
		}
		s.blocks[len(s.blocks)-1].Entries = dict.Len()
		if r.footer.Encoding != schema.EncodingPaged {
			s.blocks[len(s.blocks)-1].Encoding = schema.EncodingPlain
		}
	}
	for i := range s.idx.Pages() {
		payload, err := read(BlockData, s.idx.ptr(i))
		if err != nil {
			return err
		}
		from, to := s.idx.PageRows(i)
		b := &s.blocks[len(s.blocks)-1]
		b.FirstRow, b.Rows = from, to-from
		if err := page(s, i, payload); err != nil {
			return err
		}
	}
	return nil
}

// checkFilled checks that the blocks, in file order, lie back to back.
func (r *Reader) checkFilled(blocks []BlockInfo) error {
	at := int64(0)
	for _, b := range blocks {
		if b.Offset != at {
			return r.damaged(b.Kind.String(), b.Offset, b.Size, fmt.Errorf("begins %d bytes after the block before it", b.Offset-at))
		}
		at += b.Size
	}
	return nil
}
