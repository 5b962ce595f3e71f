package diskrowset

import (
	"io"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

const (
	samplePlaces = 64  // places of a range that a sample is taken from
	samplePiece  = 128 // rows taken at each

	// What a file takes beside the rows' own bytes.
	fileOverhead   = 512
	columnOverhead = 400
	pageOverhead   = 48

	// bytesPerFilterKey is what a key takes in a filter.
	bytesPerFilterKey = 1.3
)

// sizer chooses how many rows go into a file. It encodes a sample of the rows to come
// and corrects the outcome by how the files before it compared with their samples.
type sizer struct {
	w      *writer
	fixed  float64 // bytes of a file without rows
	scale  float64 // real bytes for each estimated one
	chosen float64 // estimate for the range chosen last, before scale; 0: none was made
	guess  int     // rows of the file before
}

func newSizer(w *writer) sizer {
	return sizer{w: w, scale: 1, guess: w.src.Rows(), fixed: fileOverhead + float64(w.o.Schema.Len()*columnOverhead)}
}

// estimate is what a sample says of the rows [from, from+rows).
type estimate struct {
	from, rows int
	perRow     float64   // bytes of a row's fixed-width cells and filter bits
	varying    []float64 // bytes per row of its other cells, at places evenly spread
}

// bytes returns the estimate for the first n rows.
func (e *estimate) bytes(n int) float64 {
	sum := float64(n) * e.perRow
	step := float64(e.rows) / float64(len(e.varying))
	for i, b := range e.varying {
		sum += b * min(step, max(0, float64(n)-float64(i)*step))
	}
	return sum
}

// fit returns how many of the rows, at least one, take the given bytes or fewer.
func (e *estimate) fit(bytes float64) int {
	return max(1, search(1, e.rows+1, func(n int) bool { return e.bytes(n) > bytes })-1)
}

// rows returns the number of rows, from row from on, of the next file.
func (s *sizer) rows(from, total int) (int, error) {
	left := min(total-from, maxRows)
	target := max(float64(s.w.o.TargetBytes)-s.fixed, 1)
	s.chosen = 0
	plain, err := s.plain(from, left)
	if err != nil || plain.bytes(left)*1.1 < target {
		return left, err
	}
	n := min(left, s.guess+s.guess/4)
	var e *estimate
	for range 4 { // until the sample covers about the rows that are chosen
		if e, err = s.encoded(from, n); err != nil {
			return 0, err
		}
		all := e.bytes(n) * s.scale
		if n == left {
			target = share(target, all)
		}
		if all > target {
			fit := e.fit(target / s.scale)
			if fit >= n/2 {
				n = fit
				break
			}
			n = fit + fit/4 + 1
			continue
		}
		if n == left {
			break
		}
		n = min(left, int(float64(n)*min(4, target/all*1.1))+1)
	}
	n = min(n, e.fit(target/s.scale))
	s.chosen = e.bytes(n)
	return n, nil
}

// share returns the size of the next file when that many bytes are left: a rest too
// small for a file of its own is shared evenly with the last full one.
func share(target, left float64) float64 {
	switch {
	case left <= 1.04*target:
		return left + 1
	case left < 2*target:
		return left / 2
	}
	return target
}

// wrote learns from a finished file of n rows.
func (s *sizer) wrote(n int, size int64) {
	s.guess = n
	if s.chosen > 0 {
		s.scale = min(max((float64(size)-s.fixed)/s.chosen, 0.2), 5)
	}
}

// shrink returns how many rows to try after n were too many.
func (s *sizer) shrink(n int) int {
	smaller := max(1, n*4/5)
	s.chosen *= float64(smaller) / float64(n)
	return smaller
}

// plain estimates rows as they are without encoding.
func (s *sizer) plain(from, n int) (*estimate, error) {
	e := &estimate{from: from, rows: n, perRow: 16} // insert time, filter, bitmaps
	sch := s.w.o.Schema
	for i := range sch.Len() {
		if k := sch.Column(i).Kind(); k != schema.KindBytes {
			e.perRow += float64(max(k.Width(), 1))
		}
	}
	return e, s.addVarying(e)
}

// addVarying measures the cells of variable length.
func (s *sizer) addVarying(e *estimate) error {
	e.varying = make([]float64, min(samplePlaces, e.rows))
	sch := s.w.o.Schema
	for i := range sch.Len() {
		if sch.Column(i).Kind() != schema.KindBytes {
			continue
		}
		err := s.sample(i, e, func(place, rows int, v *vector.Vector) error {
			e.varying[place] += float64(plainBytes(v)) / float64(rows)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// encoded estimates rows as they are in a file.
func (s *sizer) encoded(from, n int) (*estimate, error) {
	e := &estimate{from: from, rows: n}
	if !s.w.o.NoFilters {
		e.perRow = bytesPerFilterKey
	}
	if err := s.addVarying(e); err != nil {
		return nil, err
	}
	var plain, packed float64 // of the cells of variable length
	sch := s.w.o.Schema
	for i := range sch.Len() {
		rows, before, after, err := s.encodeSample(i, e)
		switch {
		case err != nil:
			return nil, err
		case sch.Column(i).Kind() == schema.KindBytes:
			plain, packed = plain+before, packed+after
		default:
			e.perRow += after / rows
		}
	}
	for i := range e.varying {
		e.varying[i] *= packed / max(plain, 1)
	}
	return e, nil
}

// encodeSample encodes the sampled cells of a column and returns how many they are and
// their bytes before and after.
func (s *sizer) encodeSample(col int, e *estimate) (rows, before, after float64, err error) {
	o := s.w.o.column(col)
	cw, err := cfile.NewWriter(io.Discard, o)
	if err != nil {
		return 0, 0, 0, err
	}
	// Differences between the pieces are not the column's, so that each is a page. Texts
	// are compressed with what comes before.
	apart := o.Encoding == schema.EncodingPaged && o.Type.Kind() != schema.KindBytes
	err = s.sample(col, e, func(_, _ int, v *vector.Vector) error {
		rows += float64(v.Len())
		before += float64(plainBytes(v))
		err := cw.Append(v)
		if err == nil && apart {
			err = cw.EndPage()
		}
		return err
	})
	if err != nil {
		return 0, 0, 0, err
	}
	sum, err := cw.Finish()
	overhead := int64(columnOverhead)
	if apart {
		overhead += int64(sum.Pages * pageOverhead)
	}
	return rows, before, float64(max(sum.Bytes-overhead, 1)), err
}

// sample gives fn cells of a column from each place of the estimate; rows is how many
// of the place there are in all.
func (s *sizer) sample(col int, e *estimate, fn func(place, rows int, v *vector.Vector) error) error {
	places := len(e.varying)
	for i := range places {
		at, end := int(int64(e.rows)*int64(i)/int64(places)), int(int64(e.rows)*int64(i+1)/int64(places))
		end = min(end, at+samplePiece)
		err := s.w.columnPieces(col, e.from+at, e.from+end, func(v *vector.Vector) error { return fn(i, end-at, v) })
		if err != nil {
			return err
		}
	}
	return nil
}
