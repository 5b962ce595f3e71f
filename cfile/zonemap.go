package cfile

import (
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// ZoneMap holds the summaries of the pages of a file and of the whole file.
type ZoneMap struct {
	Pages []vector.Zone
	File  vector.Zone
}

// AppendTo appends the zone map as a checksummed section.
func (z *ZoneMap) AppendTo(dst []byte) []byte { return dst }

// DecodeZoneMap reads what AppendTo wrote, for a column of the given kind.
func DecodeZoneMap(src []byte, kind schema.Kind) (*ZoneMap, error) { return nil, errTodo }
