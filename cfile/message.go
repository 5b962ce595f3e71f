package cfile

import "github.com/minikudu/minikudu/schema"

// BlockPtr is the extent of a block, relative to the start of the file. The zero
// BlockPtr points nowhere.
type BlockPtr struct {
	Offset int64
	Size   uint32
}

// Metadata is a named value in the header or footer.
type Metadata struct {
	Key   string
	Value []byte
}

// Footer is the decoded footer.
type Footer struct {
	Type         schema.Type
	Encoding     schema.Encoding
	Compression  schema.Compression
	Rows         int64
	Nullable     bool
	Positional   BlockPtr // root of the positional index
	Value        BlockPtr // root of the value index
	Dictionary   BlockPtr
	Incompatible uint32 // feature bits
	Compatible   uint32
	Metadata     []Metadata // of the footer alone; see Reader.Metadata
}
