package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/vfs"
)

// FrameType says what a frame holds. The numbers are on disk.
type FrameType uint8

// The types of frames.
const (
	FramePart FrameType = 1 // a part of the snapshot, an edit
	FrameEnd  FrameType = 2 // the end of the snapshot
	FrameEdit FrameType = 3 // an edit
	FrameMark FrameType = 4 // the frame before is synced
)

const (
	headSize = 16
	slotSize = headSize // room for a mark
	sector   = 512      // what a disk writes whole or not at all
)

// seed is what the checksum of every head of a generation begins with.
func seed(generation uint64) uint32 {
	return binfmt.CRC(binary.LittleEndian.AppendUint64(nil, generation))
}

func headCRC(seed uint32, off int64, head []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(off))
	return binfmt.UpdateCRC(binfmt.UpdateCRC(seed, b[:]), head[:12])
}

// pad rounds up to a multiple of 16.
func pad(n int64) int64 { return (n + headSize - 1) &^ (headSize - 1) }

// appendFrame appends the frame that stands at file offset off.
func appendFrame(dst []byte, seed uint32, off int64, typ FrameType, payload []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, headSize)...)
	dst = append(dst, payload...)
	dst = append(dst, make([]byte, pad(int64(len(payload)))-int64(len(payload)))...)
	head := dst[at : at+headSize]
	binary.LittleEndian.PutUint32(head, uint32(len(payload)))
	head[4] = byte(typ)
	binary.LittleEndian.PutUint32(head[8:], binfmt.CRC(dst[at+headSize:]))
	binary.LittleEndian.PutUint32(head[12:], headCRC(seed, off, head))
	return dst
}

// frame is a frame whose head is valid.
type frame struct {
	typ    FrameType
	off    int64 // of the head
	length int64 // of the payload
	crc    uint32
}

// end returns the offset behind payload and padding.
func (f *frame) end() int64 { return f.off + headSize + pad(f.length) }

// next returns the offset of the following frame.
func (f *frame) next() int64 {
	if f.typ == FrameEdit || f.typ == FrameEnd {
		return f.end() + slotSize
	}
	return f.end()
}

// parser walks over the bytes of one generation.
type parser struct {
	b     []byte // the whole file
	path  string
	seed  uint32
	state *State
	visit func(Record) error // may be nil
	parts uint64             // parts of the snapshot seen
	edits uint64             // edits seen
	whole bool               // the snapshot is complete
	off   int64              // of the next frame
	snap  int64              // size of the file up to the snapshot's end
	bare  []int64            // slots without their mark; the last one may be that of the last frame
}

// errIncomplete says that the generation does not count: its snapshot was never synced.
var errIncomplete = errors.New("incomplete snapshot")

// parse reads a generation into p.state. It returns errIncomplete, a
// vfs.CorruptionError or nil, and then p.off is where the next frame goes.
func (p *parser) parse(generation uint64) error {
	h, err := binfmt.DecodeHeader(p.b)
	if err == nil {
		err = h.Check(binfmt.Header{Kind: binfmt.FileManifest, File: generation})
	}
	var c *vfs.CorruptionError
	if errors.As(err, &c) {
		return p.torn(0, 0, binfmt.HeaderSize, c)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	p.state, p.off = newState(h.Store, h.Format), binfmt.HeaderSize
	for {
		if more, err := p.frame(); !more || err != nil {
			return err
		}
	}
}

// frame reads one frame; false at the end.
func (p *parser) frame() (more bool, err error) {
	f, ok := p.head(p.off)
	if !ok {
		return false, p.atEnd()
	}
	if f.end() > int64(len(p.b)) {
		cut := vfs.Corruptf("the file ends within a frame of %d bytes", f.length)
		if p.whole { // room for edits is synced before they are written
			return false, p.damage(f.off, cut)
		}
		return false, p.torn(f.off, f.end(), f.end(), cut)
	}
	if got := binfmt.CRC(p.b[f.off+headSize : f.end()]); got != f.crc {
		return false, p.torn(f.off, f.end(), f.end(), &vfs.CorruptionError{Want: f.crc, Got: got})
	}
	if err := p.take(f); err != nil {
		return false, err
	}
	if p.off = f.next(); p.off > f.end() {
		return true, p.mark(f.end())
	}
	return true, nil
}

// mark looks at the slot of a mark, which p.off is behind. A power cut may lose a mark,
// but none that a later sync covers; and its slot is in one sector, so that nothing
// else but a beginning of the mark followed by zeroes can stand there.
func (p *parser) mark(off int64) error {
	size := int64(len(p.b))
	got := p.b[min(off, size):min(p.off, size)]
	want := appendFrame(nil, p.seed, off, FrameMark, nil)
	n := 0
	for n < len(got) && got[n] == want[n] {
		n++
	}
	if n == len(want) {
		return nil
	}
	p.bare = append(p.bare, off)
	covered := p.off
	if f, ok := p.head(p.off); ok {
		covered = f.end() // its own sync covers the mark; only what proves that counts
	}
	if !isZero(got[n:]) || p.provenSynced(covered) {
		return p.damage(off, vfs.Corruptf("bad mark"))
	}
	return nil
}

// head decodes the head at off.
func (p *parser) head(off int64) (f frame, ok bool) {
	if off > int64(len(p.b))-headSize {
		return f, false
	}
	b := p.b[off : off+headSize]
	f = frame{typ: FrameType(b[4]), off: off, length: int64(binary.LittleEndian.Uint32(b)), crc: binary.LittleEndian.Uint32(b[8:])}
	return f, headCRC(p.seed, off, b) == binary.LittleEndian.Uint32(b[12:])
}

// atEnd decides what it means that no valid head stands at p.off.
func (p *parser) atEnd() error {
	size := int64(len(p.b))
	if p.whole && size-p.off < minAhead {
		if p.edits == 0 && !p.provenSynced(p.snap) {
			return errIncomplete // no edit was ever acknowledged here
		}
		return p.damage(min(p.off, size), vfs.Corruptf("the file is shorter than it was: %d bytes", size))
	}
	if isZero(p.b[min(p.off, size):]) {
		return p.incompleteUnlessWhole()
	}
	return p.torn(p.off, p.off+headSize, (p.off/sector+1)*sector, vfs.Corruptf("bad head of a frame"))
}

func (p *parser) incompleteUnlessWhole() error {
	if p.whole {
		return nil
	}
	return errIncomplete
}

// torn decides whether what stands at [off, end) was being written when the power
// failed; else it returns the damage. Proof of a later sync is looked for from the
// offset behind on.
func (p *parser) torn(off, behind, end int64, damage *vfs.CorruptionError) error {
	if p.provenSynced(behind) || !p.hasEmptySector(off, end) {
		return p.damage(off, damage)
	}
	return p.incompleteUnlessWhole()
}

// provenSynced reports whether a frame that is only written after a sync begins at
// from or later.
func (p *parser) provenSynced(from int64) bool {
	for off := pad(from); off <= int64(len(p.b))-headSize; off += headSize {
		if f, ok := p.head(off); ok && (f.typ == FrameEdit || f.typ == FrameMark) {
			return true
		}
	}
	return false
}

// hasEmptySector reports whether a sector that [off, end) touches reads as zeroes
// there. What is behind the end of the file counts as zeroes.
func (p *parser) hasEmptySector(off, end int64) bool {
	size := int64(len(p.b))
	for off < end && off < size {
		next := min((off/sector+1)*sector, end)
		if isZero(p.b[off:min(next, size)]) {
			return true
		}
		off = next
	}
	return off < end
}

var zeroes [4096]byte

func isZero(b []byte) bool {
	for len(b) > len(zeroes) {
		if !bytes.Equal(b[:len(zeroes)], zeroes[:]) {
			return false
		}
		b = b[len(zeroes):]
	}
	return bytes.Equal(b, zeroes[:len(b)])
}

// take applies a frame whose checksums are right.
func (p *parser) take(f frame) error {
	payload := p.b[f.off+headSize : f.off+headSize+f.length]
	switch {
	case f.typ == FramePart && !p.whole, f.typ == FrameEdit && p.whole:
		if f.typ == FramePart {
			p.parts++
		} else {
			p.edits++
		}
		return p.takeEdit(f, payload)
	case f.typ == FrameEnd && !p.whole:
		r := binfmt.NewReader(payload)
		if n := r.Uvarint(); r.Err() != nil || n != p.parts {
			return p.damage(f.off, vfs.Corruptf("snapshot of %d parts has %d", n, p.parts))
		}
		p.whole, p.snap = true, f.end()
		return p.show(f, nil)
	}
	return p.damage(f.off, vfs.Corruptf("frame of type %d in a wrong place", f.typ))
}

func (p *parser) takeEdit(f frame, payload []byte) error {
	e := &Edit{}
	err := e.Decode(payload)
	var c *vfs.CorruptionError
	switch {
	case errors.As(err, &c):
		return p.damage(f.off+headSize+c.Offset, &vfs.CorruptionError{Err: c.Err})
	case err != nil:
		return fmt.Errorf("%s, %s at offset %d: %w", p.path, p.section(), f.off, err)
	}
	if err := p.state.apply(e); err != nil {
		return p.damage(f.off, &vfs.CorruptionError{Err: err})
	}
	return p.show(f, e)
}

func (p *parser) show(f frame, e *Edit) error {
	if p.visit == nil {
		return nil
	}
	return p.visit(Record{Offset: f.off, Length: f.end() - f.off, Type: f.typ, Edit: e})
}

func (p *parser) section() string {
	switch {
	case p.off == 0:
		return "manifest header"
	case p.whole:
		return "manifest edit"
	}
	return "manifest snapshot"
}

// damage completes a CorruptionError.
func (p *parser) damage(off int64, c *vfs.CorruptionError) error {
	c.Path, c.Section, c.Offset = p.path, p.section(), off
	return c
}
