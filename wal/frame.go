package wal

import (
	"encoding/binary"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/mvcc"
)

// frameHeaderSize is the size of the header of a frame; see the package comment.
const frameHeaderSize = 48

// linkSize is the size of a link frame, firstFrame the offset of the frame after it.
const (
	linkSize   = frameHeaderSize + 16
	firstFrame = binfmt.HeaderSize + linkSize
)

// part says which part of a record a frame holds.
type part uint8

const (
	partWhole  part = 1
	partFirst  part = 2
	partMiddle part = 3
	partLast   part = 4
)

// begins reports whether a record begins with such a frame, ends whether it ends.
func (p part) begins() bool { return p == partWhole || p == partFirst }
func (p part) ends() bool   { return p == partWhole || p == partLast }

// frame is a decoded frame header.
type frame struct {
	dataCRC    uint32
	length     uint32
	part       part
	typ        Type
	flags      Flags
	timestamp  mvcc.Timestamp
	synced     Position
	epoch      uint32
	extensions uint32
	total      uint32
}

// put encodes the header of a frame at offset off into b.
func (f *frame) put(b []byte, seed uint32, off int64) {
	le := binary.LittleEndian
	le.PutUint32(b[4:], f.dataCRC)
	le.PutUint32(b[8:], f.length)
	b[12], b[13] = byte(f.part), byte(f.typ)
	le.PutUint16(b[14:], uint16(f.flags))
	le.PutUint64(b[16:], uint64(f.timestamp))
	le.PutUint64(b[24:], f.synced.Segment)
	le.PutUint32(b[32:], uint32(f.synced.Offset))
	le.PutUint32(b[36:], f.epoch)
	le.PutUint32(b[40:], f.extensions)
	le.PutUint32(b[44:], f.total)
	le.PutUint32(b, headerCRC(b, seed, off))
}

// headerCRC computes the checksum of the frame header b. It uses the checksum's own
// bytes for the offset and restores them.
func headerCRC(b []byte, seed uint32, off int64) uint32 {
	own := binary.LittleEndian.Uint32(b)
	binary.LittleEndian.PutUint32(b, uint32(off))
	crc := binfmt.UpdateCRC(seed, b[:frameHeaderSize])
	binary.LittleEndian.PutUint32(b, own)
	return crc
}

// decodeFrame decodes the frame header in b, which lies at pos. It reports false
// for whatever Append cannot have written there.
func decodeFrame(b []byte, seed uint32, pos Position) (f frame, ok bool) {
	le := binary.LittleEndian
	f = frame{part: part(b[12]), typ: Type(b[13])}
	if f.part < partWhole || f.part > partLast || f.typ == 0 {
		return f, false
	}
	if le.Uint32(b) != headerCRC(b, seed, pos.Offset) {
		return f, false
	}
	f.dataCRC = le.Uint32(b[4:])
	f.length = le.Uint32(b[8:])
	f.flags = Flags(le.Uint16(b[14:]))
	f.timestamp = mvcc.Timestamp(le.Uint64(b[16:]))
	f.synced = Position{le.Uint64(b[24:]), int64(le.Uint32(b[32:]))}
	f.epoch = le.Uint32(b[36:])
	f.extensions = le.Uint32(b[40:])
	f.total = le.Uint32(b[44:])
	return f, f.consistent(pos)
}

// consistent reports whether the lengths and the durable position can be true of a
// frame at pos.
func (f *frame) consistent(pos Position) bool {
	if f.total > MaxRecordBytes || f.extensions > f.total || f.length > f.total {
		return false
	}
	if (f.part == partWhole) != (f.length == f.total) {
		return false
	}
	return !pos.Before(f.synced)
}

// continues reports whether f may follow g in one record.
func (f *frame) continues(g *frame) bool {
	return f.typ == g.typ && f.flags == g.flags && f.timestamp == g.timestamp && f.epoch == g.epoch &&
		f.extensions == g.extensions && f.total == g.total
}

// segmentSeed returns the checksum seed of the frames of a segment.
func segmentSeed(store binfmt.UUID, number uint64) uint32 {
	return binfmt.CRC(binary.LittleEndian.AppendUint64(store[:], number))
}

// allZero reports whether b holds nothing but zeroes.
func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
