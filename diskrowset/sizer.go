package diskrowset

import (
	"io"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// sampling is how many places of a range a sample is taken from, and how many rows at each.
type sampling struct{ places, piece int }

var (
	rough = sampling{8, 64}   // enough to see that rows are far from filling a file
	fine  = sampling{64, 128} // to cut files
)

const (
	// What a rough sample must leave of a file for all rows to be taken: those that did not
	// fit after all would only be begun again.
	roughSlack = 1.5

	// What a file takes beside the rows' own bytes.
	fileOverhead   = 512
	columnOverhead = 400
	pageOverhead   = 48

	// bytesPerFilterKey is what a key takes in a filter.
	bytesPerFilterKey = 1.3
)

// sizer chooses how many rows go into a file. It asks the source what its rows take, or
// else encodes a sample of the rows to come, and corrects the outcome by how the files
// before it compared with that.
type sizer struct {
	w      *writer
	source rowset.FromFiles // nil: a source that does not know
	fixed  float64          // bytes of a file without rows
	scale  float64          // real bytes for each estimated one
	chosen float64          // estimate for the range chosen last, before scale; 0: none was made
	guess  int              // rows of the file before
}

func newSizer(w *writer) sizer {
	source, _ := w.src.(rowset.FromFiles)
	return sizer{w: w, source: source, scale: 1, guess: w.src.Rows(), fixed: fileOverhead + float64(w.o.Schema.Len()*columnOverhead)}
}

// estimate is what is expected of the rows [from, from+rows).
type estimate struct {
	from, rows int
	piece      int       // rows of a sample at each place
	perRow     float64   // bytes of a row's fixed-width cells and filter bits
	varying    []float64 // bytes per row of its other cells, or of all, at places evenly spread
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
	if all, err := s.all(from, left, target); all || err != nil {
		return left, err
	}
	n := min(left, s.guess+s.guess/4)
	var e *estimate
	var err error
	for range 4 { // until the estimate covers about the rows that are chosen
		if e, err = s.estimate(from, n); err != nil {
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

// all reports whether a rough look says that all rows that are left go into one file.
func (s *sizer) all(from, left int, target float64) (bool, error) {
	if s.source != nil {
		return false, nil // which knows better at once
	}
	plain, err := s.plain(from, left)
	if err != nil || plain.bytes(left)*roughSlack < target {
		return err == nil, err
	}
	e, err := s.encoded(from, left, rough)
	return err == nil && e.bytes(left)*s.scale*roughSlack < target, err
}

// estimate says what rows [from, from+n) take in a file.
func (s *sizer) estimate(from, n int) (*estimate, error) {
	if s.source == nil {
		return s.encoded(from, n, fine)
	}
	e := newEstimate(from, n, fine)
	for i := range e.varying {
		at, end := e.place(i)
		bytes, err := s.source.Measure(s.w.ctx, at, end)
		if err != nil {
			return nil, err
		}
		e.varying[i] = bytes / float64(end-at)
	}
	return e, nil
}

func newEstimate(from, n int, t sampling) *estimate {
	return &estimate{from: from, rows: n, piece: t.piece, varying: make([]float64, min(t.places, n))}
}

// place returns the rows of a place.
func (e *estimate) place(i int) (from, to int) {
	n := int64(len(e.varying))
	return e.from + int(int64(e.rows)*int64(i)/n), e.from + int(int64(e.rows)*int64(i+1)/n)
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
	if s.chosen == 0 {
		return
	}
	scale := min(max((float64(size)-s.fixed)/s.chosen, 0.2), 5)
	if s.source != nil { // what the inputs' rows took is about right, whichever file comes next
		scale = (scale + s.scale) / 2
	}
	s.scale = scale
}

// shrink returns how many rows to try after n were too many.
func (s *sizer) shrink(n int) int {
	smaller := max(1, n*4/5)
	s.chosen *= float64(smaller) / float64(n)
	return smaller
}

// plain estimates rows as they are without encoding.
func (s *sizer) plain(from, n int) (*estimate, error) {
	e := newEstimate(from, n, rough)
	e.perRow = 16 // insert time, filter, bitmaps
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

// encoded estimates rows as they are in a file, by encoding a sample of them.
func (s *sizer) encoded(from, n int, t sampling) (*estimate, error) {
	e := newEstimate(from, n, t)
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
	o.Habit = nil // pages of a sample are not like those of a column
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
	for i := range e.varying {
		at, end := e.place(i)
		end = min(end, at+e.piece)
		err := s.w.columnPieces(col, at, end, func(v *vector.Vector) error { return fn(i, end-at, v) })
		if err != nil {
			return err
		}
	}
	return nil
}
