package compaction

import "bytes"

// Chunk is a part of the key space: the keys from Start up to but without End, nil for
// no bound.
type Chunk struct {
	Start, End []byte
	Bytes      int64 // estimate of the data in it
}

// Split cuts the keys from start up to end, nil for no bound, into chunks of about
// target bytes, in key order and without gaps, for example to scan them in parallel.
// Chunks are cut at first and last keys of rowsets only, so that a large rowset that
// no other one overlaps is not divided. To weigh some columns only, give their sizes
// as RowSet.Bytes.
func Split(sets []RowSet, start, end []byte, target int64) []Chunk {
	var marks [][]byte
	for _, key := range [][]byte{start, end} {
		if key != nil {
			marks = append(marks, key)
		}
	}
	var chunks []Chunk
	var before []byte // key of the point before
	open, size := Chunk{Start: start}, 0.0
	newSweep(sets, marks...).run(func(p *endpoint, more float64, _ int) {
		from := before
		before = p.key
		if more == 0 || start != nil && bytes.Compare(from, start) < 0 || end != nil && bytes.Compare(p.key, end) > 0 {
			return
		}
		if size > 0 && size+more/2 >= float64(target) {
			chunks = append(chunks, Chunk{open.Start, from, round(size)})
			open.Start, size = from, 0
		}
		size += more
	})
	return append(chunks, Chunk{open.Start, end, round(size)})
}

func round(size float64) int64 { return int64(size + 0.5) }
