package binfmt

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC returns the CRC-32C of b.
func CRC(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// UpdateCRC returns the CRC-32C of what crc covers followed by b.
func UpdateCRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// AppendBytes appends the Uvarint length of b, and b.
func AppendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// AppendString is AppendBytes of a string.
func AppendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendBool appends one byte, 0 or 1.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendField appends a tagged field with the given payload.
func AppendField(dst []byte, tag uint64, payload []byte) []byte {
	return AppendBytes(binary.AppendUvarint(dst, tag), payload)
}

// AppendUintField appends a tagged field that holds one Uvarint.
func AppendUintField(dst []byte, tag, v uint64) []byte {
	var b [binary.MaxVarintLen64]byte
	return AppendField(dst, tag, b[:binary.PutUvarint(b[:], v)])
}
