package arrow

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The library allocates what the lengths in a schema and in compressed buffers say,
// and running out of memory cannot be recovered from. Schemas are therefore checked
// before it sees them, and its allocator refuses what no array can need.

// maxBuffer bounds one buffer.
const maxBuffer = math.MaxInt32

// boundedAllocator refuses allocations of more than maxBuffer bytes.
type boundedAllocator struct{ memory.Allocator }

// Allocate panics, which the readers recover, where size is too large.
func (a boundedAllocator) Allocate(size int) []byte {
	return a.Allocator.Allocate(checkSize(size))
}

// Reallocate panics, which the readers recover, where size is too large.
func (a boundedAllocator) Reallocate(size int, b []byte) []byte {
	return a.Allocator.Reallocate(checkSize(size), b)
}

func checkSize(size int) int {
	if size < 0 || size > maxBuffer {
		panic(fmt.Sprintf("a buffer of %d bytes", size))
	}
	return size
}

// Slots of the tables of the format's Footer.fbs, Schema.fbs and Message.fbs.
const (
	footerSchema    = 1
	footerBlocks    = 3
	messageHeader   = 2
	schemaFields    = 1
	schemaMetadata  = 2
	fieldChildren   = 5
	fieldMetadata   = 6
	maxFieldNesting = 64
)

// checkFile checks the schema in the footer of a file.
func checkFile(f *os.File, size int64) (err error) {
	defer recovered(&err)
	var tail [10]byte
	if size < int64(2*len(tail)) {
		return fmt.Errorf("a file of %d bytes", size)
	}
	if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	if string(tail[4:]) != "ARROW1" {
		return fmt.Errorf("the file ends with %q, not with ARROW1: cut short", tail[4:])
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-int64(2*len(tail)) {
		return fmt.Errorf("a footer of %d bytes in a file of %d", n, size)
	}
	footer := make([]byte, n)
	if _, err := f.ReadAt(footer, size-int64(len(tail))-n); err != nil {
		return err
	}
	t := rootOf(footer)
	if err := t.checkVector(footerBlocks, 24); err != nil {
		return err
	}
	return t.child(footerSchema).checkSchema()
}

// checkStream checks the schema message at the start of a stream of the given size.
func checkStream(f io.ReaderAt, size int64) (err error) {
	defer recovered(&err)
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return err
	}
	at, n := int64(8), binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head[:]) != math.MaxUint32 { // before version 0.15
		at, n = 4, binary.LittleEndian.Uint32(head[:])
	}
	if int64(n) > size-at {
		return fmt.Errorf("a schema of %d bytes in a stream of %d: no Arrow file, or cut short", n, size)
	}
	message := make([]byte, n)
	if _, err := f.ReadAt(message, at); err != nil {
		return err
	}
	return rootOf(message).child(messageHeader).checkSchema()
}

// table is a table of a flat buffer. Its methods panic where the buffer ends too early.
type table struct {
	buf []byte
	pos uint32
}

func rootOf(buf []byte) table { return table{buf, binary.LittleEndian.Uint32(buf)} }

func (t table) u32(pos uint32) uint32 { return binary.LittleEndian.Uint32(t.buf[pos:]) }

// slot returns the position of a field, 0 when it is absent.
func (t table) slot(i uint32) uint32 {
	vtable := t.pos - t.u32(t.pos)
	if 4+2*i >= uint32(binary.LittleEndian.Uint16(t.buf[vtable:])) {
		return 0
	}
	off := binary.LittleEndian.Uint16(t.buf[vtable+4+2*i:])
	if off == 0 {
		return 0
	}
	return t.pos + uint32(off)
}

// child returns the table that a field refers to; an absent one panics.
func (t table) child(i uint32) table {
	at := t.slot(i)
	if at == 0 {
		panic(fmt.Sprintf("no table in slot %d", i))
	}
	return table{t.buf, at + t.u32(at)}
}

// vector returns the first element and the length of a vector.
func (t table) vector(i uint32) (at, n uint32) {
	if at = t.slot(i); at == 0 {
		return 0, 0
	}
	at += t.u32(at)
	return at + 4, t.u32(at)
}

// checkVector checks that the elements of a vector, of width bytes, lie in the buffer.
func (t table) checkVector(i, width uint32) error {
	at, n := t.vector(i)
	if uint64(at)+uint64(n)*uint64(width) > uint64(len(t.buf)) {
		return fmt.Errorf("a vector of %d elements in %d bytes", n, len(t.buf))
	}
	return nil
}

func (t table) checkSchema() error {
	if err := t.checkVector(schemaMetadata, 4); err != nil {
		return err
	}
	budget := len(t.buf)
	return t.checkFields(schemaFields, 0, &budget)
}

// checkFields checks fields and those within them; budget is the number that may be
// left in the buffer, so that fields which share children do not multiply.
func (t table) checkFields(i uint32, depth int, budget *int) error {
	if err := t.checkVector(i, 4); err != nil {
		return err
	}
	at, n := t.vector(i)
	if *budget -= int(n); *budget < 0 || depth > maxFieldNesting {
		return fmt.Errorf("fields nested or shared beyond reason")
	}
	for ; n > 0; n-- {
		f := table{t.buf, at + t.u32(at)}
		if err := f.checkVector(fieldMetadata, 4); err != nil {
			return err
		}
		if err := f.checkFields(fieldChildren, depth+1, budget); err != nil {
			return err
		}
		at += 4
	}
	return nil
}
