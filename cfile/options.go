package cfile

import (
	"context"

	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/schema"
)

// Source is what a Reader reads from; a vfs.File is one. It fills p completely or
// returns an error.
type Source interface {
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
}

// WriterOptions describe the column file to write.
type WriterOptions struct {
	Column      string // for messages only
	Type        schema.Type
	Nullable    bool
	Encoding    schema.Encoding    // EncodingAuto picks Kudu's default of the type
	Compression schema.Compression // CompressionDefault picks the encoding's default; none for EncodingPaged

	// BlockSize is the target size of a page in encoded bytes: 0 means 256 KiB, less
	// than 512 means 512. With a codec it is at most 8 MiB.
	BlockSize int

	// ValueIndex adds an index by value. The column must be non-nullable, of a type
	// allowed in keys, and its values ascending.
	ValueIndex bool
	// NoPositionalIndex leaves the index by row out; it needs ValueIndex.
	NoPositionalIndex bool
	// NoZones leaves the summaries of pages and file out.
	NoZones bool
	// Habit remembers how pages of the column are encoded, for EncodingPaged; nil: nothing does.
	Habit *encoding.Habit

	indexBlockSize int  // 0: 32 KiB; tests make deep trees with small ones
	noChecksums    bool // tests only
}

// Summary describes a finished file.
type Summary struct {
	Rows, Bytes       int64
	Pages             int
	Encoding          schema.Encoding
	Compression       schema.Compression
	FirstKey, LastKey []byte   // encoded, with ValueIndex
	Zones             *ZoneMap // nil with NoZones
}

// ReaderOptions say how a file is opened.
type ReaderOptions struct {
	Path   string // for messages
	Column string // for messages

	// AllowNoChecksums accepts files written without checksums, in which damage
	// cannot be told from data.
	AllowNoChecksums bool

	// MaxPageBytes bounds a block on disk and the memory of a decoded page; 0 means
	// 256 MiB. Pages above it are refused with ErrPageTooLarge.
	MaxPageBytes int

	skipChecksums bool // fuzzing reaches the decoders behind the checksums
}
