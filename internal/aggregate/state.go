package aggregate

import (
	"errors"
	"math"

	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// State is a partial result. Start one with [Plan.NewState].
type State struct {
	plan   *Plan
	groups *groups // nil without group-by
	accs   []accumulator

	ids  []uint32      // group of each row of the current batch
	all  vector.Bitmap // selection of every row
	live vector.Bitmap // selected rows whose cell is not null
}

// accumulator gathers one aggregate for every group.
type accumulator interface {
	// grow makes room for n groups.
	grow(n int)
	// add takes the cells of v at the rows of sel, none of them null, into group 0.
	add(v *vector.Vector, sel vector.Bitmap)
	// addGroups takes them into the groups of their rows.
	addGroups(v *vector.Vector, sel vector.Bitmap, ids []uint32)
	// addZone takes a zone that suffices, with some cell that is not null, into group 0.
	addZone(z vector.Zone)
	// merge takes group i of an accumulator of the same type into group ids[i].
	merge(from accumulator, ids []uint32)
	// result appends the value of each of n groups to dst.
	result(dst *vector.Vector, n int) error
}

// NewState returns a state without rows.
func (p *Plan) NewState() *State {
	s := &State{plan: p}
	if len(p.groupBy) > 0 {
		s.groups = newGroups(p)
	}
	for _, f := range p.specs {
		acc := newAccumulator(p.schema, f)
		if s.groups == nil {
			acc.grow(1)
		}
		s.accs = append(s.accs, acc)
	}
	return s
}

// Add takes the selected rows of a batch; a nil selection means all of them. column
// returns the cells of a schema column for all rows, possibly in dictionary form.
func (s *State) Add(rows int, sel vector.Bitmap, column func(col int) (*vector.Vector, error)) error {
	if sel == nil {
		s.all = s.all.Grow(rows)
		s.all.SetRange(0, rows)
		sel = s.all
	}
	sel = sel[:vector.Words(rows)]
	if s.groups != nil {
		if err := s.assign(rows, sel, column); err != nil {
			return err
		}
	}
	for i, f := range s.plan.specs {
		if err := s.addOne(s.accs[i], f, sel, column); err != nil {
			return err
		}
	}
	return nil
}

// assign finds the group of each selected row.
func (s *State) assign(rows int, sel vector.Bitmap, column func(int) (*vector.Vector, error)) error {
	if cap(s.ids) < rows {
		s.ids = make([]uint32, rows)
	}
	s.ids = s.ids[:rows]
	if err := s.groups.assign(sel, column, s.ids); err != nil {
		return err
	}
	s.grow()
	return nil
}

func (s *State) grow() {
	for _, acc := range s.accs {
		acc.grow(s.groups.len())
	}
}

func (s *State) addOne(acc accumulator, f Spec, sel vector.Bitmap, column func(int) (*vector.Vector, error)) error {
	var v *vector.Vector
	if f.Func != CountRows {
		var err error
		if v, err = column(f.Column); err != nil {
			return err
		}
		if valid := v.Valid(); valid != nil {
			s.live = append(s.live[:0], sel...)
			s.live.And(valid)
			sel = s.live
		}
	}
	if s.groups == nil {
		acc.add(v, sel)
	} else {
		acc.addGroups(v, sel, s.ids)
	}
	return nil
}

// AddZones takes a run of rows, all of them selected and visible, by the zones of
// its columns alone. It reports whether they suffice; if not, nothing was taken.
// zone returns false where no zone is known.
func (s *State) AddZones(rows int64, zone func(col int) (vector.Zone, bool)) bool {
	if s.groups != nil {
		return false
	}
	zones := make([]vector.Zone, len(s.accs))
	for i, f := range s.plan.specs {
		z, ok := vector.Zone{Rows: rows}, true
		if f.Func != CountRows {
			z, ok = zone(f.Column)
		}
		if !ok || z.Rows != rows || !suffices(f.Func, z) {
			return false
		}
		zones[i] = z
	}
	for i, acc := range s.accs {
		if zones[i].Rows > zones[i].Nulls {
			acc.addZone(zones[i])
		}
	}
	return true
}

// suffices reports whether the zone alone answers the function.
func suffices(f Func, z vector.Zone) bool {
	switch {
	case f == CountRows || f == Count || z.Nulls >= z.Rows:
		return true
	case f == Min:
		return z.Exact && !z.Min.IsNull() && !z.Min.IsNaN()
	case f == Max:
		return z.Exact && !z.Max.IsNull() && !z.Max.IsNaN()
	}
	return false
}

// Merge takes the rows of t, a state of the same plan, into s. t must not be used
// afterwards.
func (s *State) Merge(t *State) error {
	if s.plan != t.plan {
		return errors.New("aggregate states of two plans cannot be merged")
	}
	ids := []uint32{0}
	if s.groups != nil {
		var err error
		if ids, err = s.groups.merge(t.groups); err != nil {
			return err
		}
		s.grow()
	}
	for i, acc := range s.accs {
		acc.merge(t.accs[i], ids)
	}
	return nil
}

// Groups returns the number of groups so far, 1 without group-by. With it the
// caller bounds the memory of a state.
func (s *State) Groups() int {
	if s.groups == nil {
		return 1
	}
	return s.groups.len()
}

// Result returns the answer for the rows taken so far. A sum that does not fit its
// type is an error that names the column.
func (s *State) Result() (*Result, error) {
	n := s.Groups()
	r := &Result{Columns: s.plan.output, Rows: n}
	if s.groups != nil {
		vs, err := s.groups.values()
		if err != nil {
			return nil, err
		}
		r.Vectors = vs
	}
	for i, acc := range s.accs {
		out := vector.New(s.plan.output[len(s.plan.groupBy)+i].Kind(), n)
		if err := acc.result(out, n); err != nil {
			return nil, &schema.ValueError{Row: -1, Column: s.plan.schema.Column(s.plan.specs[i].Column).Name,
				Want: s.plan.output[len(s.plan.groupBy)+i].TypeString(), Reason: err.Error()}
		}
		r.Vectors = append(r.Vectors, out)
	}
	return r, nil
}

// maxGroups bounds the groups of a state: ids are 32 bits.
const maxGroups = math.MaxInt32

var errTooManyGroups = errors.New("more than 2**31-1 groups")
