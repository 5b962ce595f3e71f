package diskrowset

import (
	"io"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	samplePieces = 16  // places of the source that a sample is taken from
	samplePiece  = 512 // rows taken at each

	// What a file takes beside the rows' own bytes.
	fileOverhead   = 512
	columnOverhead = 512

	// bytesPerFilterKey is what a key takes in a filter.
	bytesPerFilterKey = 1.3
)

// sizer chooses how many rows go into a file. It encodes a sample of the rows to come
// and corrects the outcome by how the files before it compared with their samples.
type sizer struct {
	w       *writer
	fixed   float64 // bytes of a file without rows
	scale   float64 // real bytes of a row for each sampled one
	sampled float64 // sampled bytes per row of the range chosen last
	guess   int     // rows of the file before
}

func newSizer(w *writer) sizer {
	return sizer{w: w, scale: 1, guess: w.src.Rows(), fixed: fileOverhead + float64(w.o.Schema.Len()*columnOverhead)}
}

// rows returns the number of rows, from row from on, of the next file.
func (s *sizer) rows(from, total int) (int, error) {
	left := min(total-from, maxRows)
	plain, err := s.plainPerRow(from, from+left)
	if err != nil {
		return 0, err
	}
	target := max(float64(s.w.o.TargetBytes)-s.fixed, 1)
	if plain*float64(left)*1.1 < target {
		return left, nil
	}
	n := min(left, s.guess)
	for range 3 { // until the sample covers about the rows that are chosen
		if s.sampled, err = s.encodedPerRow(from, from+n); err != nil {
			return 0, err
		}
		covered := n
		n = share(left, target/max(s.sampled*s.scale, 1e-6))
		if n >= covered/2 {
			break
		}
	}
	return n, nil
}

// share returns how many of the rows left go into a file that can hold fit. A rest too
// small for a file of its own is shared evenly with the last full one.
func share(left int, fit float64) int {
	switch {
	case float64(left) <= 1.04*fit:
		return left
	case float64(left) < 2*fit:
		return (left + 1) / 2
	}
	return max(1, int(fit))
}

// wrote learns from a finished file of n rows.
func (s *sizer) wrote(n int, size int64) {
	s.guess = n
	if s.sampled > 0 {
		s.scale = max(float64(size)-s.fixed, 1) / (s.sampled * float64(n))
	}
}

// shrink returns how many rows to try after n were too many.
func (s *sizer) shrink(n int) int {
	s.scale *= 1.25
	return max(1, n*4/5)
}

// plainPerRow returns the average bytes of a row without encoding.
func (s *sizer) plainPerRow(from, to int) (float64, error) {
	sch := s.w.o.Schema
	fixed := 16.0 // insert time, filter, bitmaps
	var bytes, rows int64
	for i := range sch.Len() {
		if k := sch.Column(i).Kind(); k != schema.KindBytes {
			fixed += float64(max(k.Width(), 1))
			continue
		}
		n, err := s.sample(i, from, to, func(v *vector.Vector) error {
			bytes += plainBytes(v)
			return nil
		})
		if err != nil {
			return 0, err
		}
		rows = n
	}
	if rows > 0 {
		fixed += float64(bytes) / float64(rows)
	}
	return fixed, nil
}

// encodedPerRow returns the average bytes of a row in a file, by a sample.
func (s *sizer) encodedPerRow(from, to int) (float64, error) {
	sch := s.w.o.Schema
	var bytes, rows int64
	for i := range sch.Len() {
		cw, err := cfile.NewWriter(io.Discard, columnOptions(sch, i))
		if err != nil {
			return 0, err
		}
		if rows, err = s.sample(i, from, to, cw.Append); err != nil {
			return 0, err
		}
		sum, err := cw.Finish()
		if err != nil {
			return 0, err
		}
		bytes += max(sum.Bytes-columnOverhead, 1)
	}
	perRow := float64(bytes) / float64(rows)
	if !s.w.o.NoFilters {
		perRow += bytesPerFilterKey
	}
	return perRow, nil
}

// sample gives fn cells of a column from places spread over rows [from, to) and
// returns how many there were.
func (s *sizer) sample(col, from, to int, fn func(*vector.Vector) error) (rows int64, err error) {
	read := func(from, to int) error {
		rows += int64(to - from)
		return s.w.columnPieces(col, from, to, fn)
	}
	if to-from <= samplePieces*samplePiece {
		return rows, read(from, to)
	}
	for i := range samplePieces {
		at := from + int(int64(to-from-samplePiece)*int64(i)/(samplePieces-1))
		if err := read(at, at+samplePiece); err != nil {
			return rows, err
		}
	}
	return rows, nil
}
