package cfile

import (
	"encoding/binary"
	"errors"
)

// The header and footer are protocol buffer messages of a dozen fields. They are
// written by hand in ascending field order, which keeps their bytes stable.

// Wire types of the protocol buffer encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var (
	errTruncated = errors.New("message ends early")
	errWireType  = errors.New("message field of the wrong wire type")
	errRange     = errors.New("message number out of range")
)

func appendTag(dst []byte, field, wireType int) []byte {
	return binary.AppendUvarint(dst, uint64(field)<<3|uint64(wireType))
}

func appendNumber(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, field, wireVarint), v)
}

func appendBytes(dst []byte, field int, b []byte) []byte {
	dst = binary.AppendUvarint(appendTag(dst, field, wireBytes), uint64(len(b)))
	return append(dst, b...)
}

// message reads the fields of a message one by one. Its error sticks.
type message struct {
	rest     []byte
	wireType int
	err      error
}

func (m *message) fail(err error) {
	if m.err == nil {
		m.err = err
	}
	m.rest = nil
}

// next returns the number of the next field, 0 at the end or after an error. The
// caller then takes the field's value with number, bytes or skip.
func (m *message) next() int {
	if m.err != nil || len(m.rest) == 0 {
		return 0
	}
	tag := m.varint()
	m.wireType = int(tag & 7)
	field := tag >> 3
	if field == 0 || field >= 1<<29 {
		m.fail(errRange)
		return 0
	}
	return int(field)
}

func (m *message) varint() uint64 {
	v, n := binary.Uvarint(m.rest)
	if n <= 0 {
		m.fail(errTruncated)
		return 0
	}
	m.rest = m.rest[n:]
	return v
}

func (m *message) take(n uint64) []byte {
	if n > uint64(len(m.rest)) {
		m.fail(errTruncated)
		return nil
	}
	b := m.rest[:n:n]
	m.rest = m.rest[n:]
	return b
}

// number returns the field's value, which must be at most limit.
func (m *message) number(limit uint64) uint64 {
	if m.wireType != wireVarint {
		m.fail(errWireType)
		return 0
	}
	v := m.varint()
	if v > limit {
		m.fail(errRange)
		return 0
	}
	return v
}

func (m *message) bytes() []byte {
	if m.wireType != wireBytes {
		m.fail(errWireType)
		return nil
	}
	return m.take(m.varint())
}

// skip passes over a field of unknown number.
func (m *message) skip() {
	switch m.wireType {
	case wireVarint:
		m.varint()
	case wireFixed64:
		m.take(8)
	case wireBytes:
		m.take(m.varint())
	case wireFixed32:
		m.take(4)
	default:
		m.fail(errWireType)
	}
}
