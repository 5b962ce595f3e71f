package cfile

import (
	"errors"
	"fmt"
	"math"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// Feature bits a reader must know to read a file.
const (
	featureChecksum = 1 << 0  // every block, the header and the footer carry a CRC-32C
	featureArray    = 1 << 1  // cells are arrays
	featureExtended = 1 << 31 // codecs and encodings that Kudu does not have

	knownFeatures = featureChecksum | featureExtended
)

// firstExtended is the first number of codecs and encodings that Kudu does not have.
const firstExtended = 100

// maxMessage bounds the header and footer message.
const maxMessage = 65536

// BlockPtr is the extent of a block, relative to the start of the file. The zero
// BlockPtr points nowhere.
type BlockPtr struct {
	Offset int64
	Size   uint32
}

// IsZero reports whether the pointer points nowhere.
func (p BlockPtr) IsZero() bool { return p == BlockPtr{} }

// end returns the offset after the block.
func (p BlockPtr) end() int64 { return p.Offset + int64(p.Size) }

func (p BlockPtr) appendTo(dst []byte) []byte {
	return appendNumber(appendNumber(dst, 1, uint64(p.Offset)), 2, uint64(p.Size))
}

func decodeBlockPtr(b []byte) (p BlockPtr, err error) {
	m := message{rest: b}
	for f := m.next(); f != 0; f = m.next() {
		switch f {
		case 1:
			p.Offset = int64(m.number(math.MaxInt64))
		case 2:
			p.Size = uint32(m.number(math.MaxInt32))
		default:
			m.skip()
		}
	}
	if m.err == nil && (p.Offset == 0 || p.Size == 0) {
		m.err = errors.New("block pointer without offset or size")
	}
	return p, m.err
}

func (p BlockPtr) appendRoot(dst []byte, field int) []byte {
	if p.IsZero() {
		return dst
	}
	return appendBytes(dst, field, appendBytes(nil, 1, p.appendTo(nil)))
}

func decodeRoot(b []byte) (p BlockPtr, err error) {
	m := message{rest: b}
	for f := m.next(); f != 0; f = m.next() {
		if f != 1 {
			m.skip()
			continue
		}
		if p, err = decodeBlockPtr(m.bytes()); err != nil {
			return p, err
		}
	}
	if m.err == nil && p.IsZero() {
		m.err = errors.New("index without root")
	}
	return p, m.err
}

// Metadata is a named value in the header or footer.
type Metadata struct {
	Key   string
	Value []byte
}

func (p Metadata) appendTo(dst []byte) []byte {
	return appendBytes(appendBytes(dst, 1, []byte(p.Key)), 2, p.Value)
}

func decodeMetadata(b []byte) (p Metadata, err error) {
	m := message{rest: b}
	var hasKey, hasValue bool
	for f := m.next(); f != 0; f = m.next() {
		switch f {
		case 1:
			p.Key, hasKey = string(m.bytes()), true
		case 2:
			p.Value, hasValue = append([]byte{}, m.bytes()...), true
		default:
			m.skip()
		}
	}
	if m.err == nil && !(hasKey && hasValue) {
		m.err = errors.New("metadata pair without key or value")
	}
	return p, m.err
}

// appendHeader appends the header message.
func appendHeader(dst []byte, pairs []Metadata) []byte {
	for _, p := range pairs {
		dst = appendBytes(dst, 3, p.appendTo(nil))
	}
	return dst
}

func decodeHeader(b []byte) (pairs []Metadata, err error) {
	m := message{rest: b}
	for f := m.next(); f != 0; f = m.next() {
		if f != 3 {
			m.skip()
			continue
		}
		p, err := decodeMetadata(m.bytes())
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, m.err
}

// Footer is the decoded footer.
type Footer struct {
	Type         schema.Type
	Encoding     schema.Encoding
	Compression  schema.Compression
	Rows         int64
	Nullable     bool
	Positional   BlockPtr   // root of the positional index
	Value        BlockPtr   // root of the value index
	Dictionary   BlockPtr   // of a dictionary-encoded file
	Incompatible uint32     // feature bits a reader must know
	Compatible   uint32     // feature bits a reader may ignore
	Metadata     []Metadata // of the footer alone; see Reader.Metadata
}

// appendTo appends the footer message.
func (f *Footer) appendTo(dst []byte) []byte {
	dst = appendNumber(dst, 1, uint64(f.Type))
	dst = appendNumber(dst, 2, uint64(f.Encoding))
	dst = appendNumber(dst, 3, uint64(f.Rows))
	dst = f.Positional.appendRoot(dst, 4)
	dst = f.Value.appendRoot(dst, 5)
	dst = appendNumber(dst, 6, uint64(f.Compression))
	for _, p := range f.Metadata {
		dst = appendBytes(dst, 7, p.appendTo(nil))
	}
	nullable := uint64(0)
	if f.Nullable {
		nullable = 1
	}
	dst = appendNumber(dst, 8, nullable)
	if !f.Dictionary.IsZero() {
		dst = appendBytes(dst, 9, f.Dictionary.appendTo(nil))
	}
	return appendNumber(dst, 10, uint64(f.Incompatible))
}

// rawFooter is a footer whose enums have not been checked: they are needed before it
// is known whether the message is intact.
type rawFooter struct {
	Footer
	typ, enc, codec          uint64
	hasType, hasEnc, hasRows bool
	isArray                  bool
}

// parseFooter reads a footer message that may be damaged.
func parseFooter(b []byte) (f rawFooter, err error) {
	m := message{rest: b}
	f.codec = uint64(schema.CompressionNone)
	for field := m.next(); field != 0 && err == nil; field = m.next() {
		switch field {
		case 1:
			f.typ, f.hasType = m.number(math.MaxInt32), true
		case 2:
			f.enc, f.hasEnc = m.number(math.MaxInt32), true
		case 3:
			f.Rows, f.hasRows = int64(m.number(math.MaxUint32)), true
		case 4:
			f.Positional, err = decodeRoot(m.bytes())
		case 5:
			f.Value, err = decodeRoot(m.bytes())
		case 6:
			f.codec = m.number(math.MaxInt32)
		case 7:
			var p Metadata
			p, err = decodeMetadata(m.bytes())
			f.Metadata = append(f.Metadata, p)
		case 8:
			f.Nullable = m.number(1) == 1
		case 9:
			f.Dictionary, err = decodeBlockPtr(m.bytes())
		case 10:
			f.Incompatible = uint32(m.number(math.MaxUint32))
		case 11:
			f.Compatible = uint32(m.number(math.MaxUint32))
		case 12:
			f.isArray = m.number(1) == 1
		default:
			m.skip()
		}
	}
	if m.err != nil {
		err = m.err
	}
	if err == nil && !(f.hasType && f.hasEnc && f.hasRows) {
		err = errors.New("required field missing")
	}
	return f, err
}

// check refuses what this package does not read, then what no writer produces.
func (f *rawFooter) check() error {
	switch {
	case f.Incompatible&featureArray != 0 || f.isArray:
		return fmt.Errorf("array column: %w", vfs.ErrNotSupported)
	case f.Incompatible&^knownFeatures != 0:
		return fmt.Errorf("incompatible features %#x: %w", f.Incompatible&^knownFeatures, vfs.ErrNotSupported)
	case !schema.Type(min(f.typ, math.MaxUint8)).Valid():
		return fmt.Errorf("data type %d: %w", f.typ, vfs.ErrNotSupported)
	case !knownEncoding(f.enc):
		return fmt.Errorf("encoding %d: %w", f.enc, vfs.ErrNotSupported)
	case !knownCodec(f.codec):
		return fmt.Errorf("compression %d: %w", f.codec, vfs.ErrNotSupported)
	}
	f.Type = schema.Type(f.typ)
	f.Encoding = schema.Encoding(f.enc).Resolve(f.Type.Kind())
	f.Compression = schema.Compression(f.codec)
	switch paged := f.Encoding == schema.EncodingPaged; {
	case !paged && !f.Encoding.Supports(f.Type.Kind()):
		return fmt.Errorf("encoding %s of type %s", f.Encoding, f.Type)
	case (f.codec >= firstExtended || paged) && f.Incompatible&featureExtended == 0:
		return fmt.Errorf("encoding %s and compression %s without their feature bit", f.Encoding, f.Compression)
	case paged && f.Compression != schema.CompressionNone:
		return fmt.Errorf("compression %s of a file whose pages have their own", f.Compression)
	case paged && !f.Dictionary.IsZero() && f.Type.Kind() != schema.KindBytes,
		!paged && (f.Encoding == schema.EncodingDict) == f.Dictionary.IsZero():
		return fmt.Errorf("dictionary pointer %d with encoding %s of type %s", f.Dictionary.Offset, f.Encoding, f.Type)
	case f.Positional.IsZero() && f.Value.IsZero():
		return errors.New("no index")
	case !f.Value.IsZero() && (f.Nullable || !f.Type.KeyCapable()):
		return fmt.Errorf("value index on a %s column, nullable %t", f.Type, f.Nullable)
	}
	return nil
}

func knownEncoding(n uint64) bool {
	switch schema.Encoding(min(n, math.MaxUint8)) {
	case schema.EncodingAuto, schema.EncodingPlain, schema.EncodingPrefix, schema.EncodingRLE,
		schema.EncodingDict, schema.EncodingBitShuffle, schema.EncodingPaged:
		return true
	}
	return false
}

func knownCodec(n uint64) bool {
	switch schema.Compression(min(n, math.MaxUint8)) {
	case schema.CompressionNone, schema.CompressionSnappy, schema.CompressionLZ4, schema.CompressionZlib,
		schema.CompressionZstd:
		return true
	}
	return false
}
