package cfile

import "github.com/minikudu/minikudu/schema"

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

// BlockInfo describes one part of a file.
type BlockInfo struct {
	Kind        BlockKind
	Offset      int64 // in the source
	Size        int64 // on disk, checksum included
	PlainSize   int64 // of the payload after decompression
	Stored      bool  // not compressed although the file has a codec
	Encoding    schema.Encoding
	Compression schema.Compression
	FirstRow    int64 // data blocks
	Rows        int64 // data blocks; footer: of the file
	Entries     int   // index blocks, dictionary: words
	Level       int   // index blocks: 0 for leaves
}
