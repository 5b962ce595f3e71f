package binfmt

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/minikudu/minikudu/vfs"
)

// HeaderSize is the size of an encoded Header.
const HeaderSize = 64

// Magic begins every file of a store.
const Magic = "minikudu"

// Format numbers of a store. The list only grows; each entry says what it permits.
const (
	// Format1 is the first format.
	Format1 uint16 = 1
	// FormatNewest is the newest format this program reads and writes.
	FormatNewest = Format1
)

// FileKind says what a file is. The numbers are on disk.
type FileKind uint8

// The kinds of files.
const (
	FileManifest FileKind = 1
	FileLog      FileKind = 2
	FileRowSet   FileKind = 3
	FileDelta    FileKind = 4 // changes after the base data: REDO
	FileUndo     FileKind = 5 // what changes replaced: UNDO
)

var fileKindNames = map[FileKind]string{FileManifest: "manifest", FileLog: "log", FileRowSet: "rowset", FileDelta: "delta", FileUndo: "undo"}

// String returns the kind's name.
func (k FileKind) String() string {
	if s, ok := fileKindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// UUID identifies a store.
type UUID [16]byte

// String returns the usual form with dashes.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Header begins every file of a store. See the package comment for its layout.
type Header struct {
	Kind         FileKind
	Format       uint16 // 0 is written as FormatNewest
	Compatible   uint32 // feature bits a reader may ignore
	Incompatible uint32 // feature bits a reader must know
	Store        UUID
	File         uint64 // file number
	Key          uint64 // id of the encryption key, 0: not encrypted
}

// AppendTo appends the encoded header.
func (h *Header) AppendTo(dst []byte) []byte {
	at := len(dst)
	format := h.Format
	if format == 0 {
		format = FormatNewest
	}
	dst = append(dst, Magic...)
	dst = append(dst, byte(h.Kind), 0)
	dst = binary.LittleEndian.AppendUint16(dst, format)
	dst = binary.LittleEndian.AppendUint32(dst, h.Compatible)
	dst = binary.LittleEndian.AppendUint32(dst, h.Incompatible)
	dst = append(dst, h.Store[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.File)
	dst = binary.LittleEndian.AppendUint64(dst, h.Key)
	dst = append(dst, make([]byte, 8)...)
	return binary.LittleEndian.AppendUint32(dst, CRC(dst[at:]))
}

// DecodeHeader decodes the header at the beginning of src. It checks magic and
// checksum, and refuses a newer format; see Check for the rest.
func DecodeHeader(src []byte) (Header, error) {
	fail := func(err error) (Header, error) {
		return Header{}, &vfs.CorruptionError{Section: "file header", Length: HeaderSize, Err: err}
	}
	if len(src) < HeaderSize {
		return fail(fmt.Errorf("%d bytes, want %d", len(src), HeaderSize))
	}
	if string(src[:8]) != Magic {
		return fail(fmt.Errorf("not a minikudu file: magic %x", src[:8]))
	}
	want, got := binary.LittleEndian.Uint32(src[60:]), CRC(src[:60])
	if want != got {
		return Header{}, &vfs.CorruptionError{Section: "file header", Length: HeaderSize, Want: want, Got: got}
	}
	r := NewReader(src[8:60])
	h := Header{Kind: FileKind(r.U8())}
	r.U8()
	h.Format, h.Compatible, h.Incompatible = r.U16(), r.U32(), r.U32()
	copy(h.Store[:], r.Take(16))
	h.File, h.Key = r.U64(), r.U64()
	if h.Format == 0 {
		return fail(fmt.Errorf("format 0"))
	}
	if h.Format > FormatNewest {
		return h, fmt.Errorf("format %d is newer than %d: %w", h.Format, FormatNewest, vfs.ErrNotSupported)
	}
	return h, nil
}

// Check compares the header with what its reader expects: the kind, store and file
// number of want, and no incompatible bits beyond those of want. A zero want.Store
// accepts any store; encrypted files are refused.
func (h *Header) Check(want Header) error {
	fail := func(format string, args ...any) error {
		return &vfs.CorruptionError{Section: "file header", Length: HeaderSize, Err: fmt.Errorf(format, args...)}
	}
	switch unknown := h.Incompatible &^ want.Incompatible; {
	case h.Kind != want.Kind:
		return fail("a %s file where a %s file is expected", h.Kind, want.Kind)
	case want.Store != UUID{} && h.Store != want.Store:
		return fail("file of store %s, not %s", h.Store, want.Store)
	case h.File != want.File:
		return fail("file number %d, want %d", h.File, want.File)
	case unknown != 0:
		return fmt.Errorf("feature bits %#x: %w", unknown, vfs.ErrNotSupported)
	case h.Key != 0:
		return fmt.Errorf("encrypted with key %d: %w", h.Key, vfs.ErrNotSupported)
	}
	return nil
}
