package tablet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// The reasons for which a row of a write fails.
var (
	// ErrAlreadyPresent: an insert of a live key.
	ErrAlreadyPresent = errors.New("already present")
	// ErrNotFound: an update or delete of a key that is not live.
	ErrNotFound = errors.New("not found")
	// ErrImmutable: an update of an immutable column.
	ErrImmutable = errors.New("immutable column")
)

// OpKind is an operation on a row.
type OpKind uint8

// The operations. The Ignore forms pass over rows whose key is not in the state that
// they need, and over immutable columns.
const (
	Insert       OpKind = iota // absent → live
	InsertIgnore               // absent → live, else nothing
	Upsert                     // absent → live, live → columns set
	UpsertIgnore               // likewise, immutable columns left alone
	Update                     // live → columns set
	UpdateIgnore               // live → columns set, immutable ones left alone; else nothing
	Delete                     // live → absent
	DeleteIgnore               // live → absent, else nothing
)

func (k OpKind) ignores() bool { return k%2 == 1 }

// Inserts reports whether the operation makes an absent row live.
func (k OpKind) Inserts() bool { return k <= UpsertIgnore }

// Updates reports whether the operation sets columns of a live row.
func (k OpKind) Updates() bool { return k >= Upsert && k <= UpdateIgnore }

// Group is rows of a write with the same operation and the same columns given.
type Group struct {
	Kind    OpKind
	Columns []int            // schema columns given, ascending; all key columns, but for a generated id of an insert
	Values  []*vector.Vector // one for each of Columns
	Rows    []int32          // number of each row in the write, ascending
}

// cell returns the value of schema column col for row i, and whether it is given.
func (g *Group) cell(col, i int) (schema.Value, bool) {
	k, ok := slices.BinarySearch(g.Columns, col)
	if !ok {
		return schema.Null, false
	}
	return g.Values[k].Value(i), true
}

// Failure says why a row of a write was left out.
type Failure struct {
	Row int32 // in the write
	Err error
}

// Counts are what a write does.
type Counts struct {
	Inserted, Updated, Deleted int64
	Ignored                    int64 // rows that an Ignore form passed over
	Unchanged                  int64 // upserts of live rows that set nothing
}

// effect is net effects (R2) of one kind on rows that set the same columns.
type effect struct {
	kind    rowset.ChangeKind
	columns []int            // of a Put all, of a Set those set, of a Del none
	values  []*vector.Vector // one for each of columns
	keys    []int32          // index of each row's key in Op.keys
}

// source is a row of a write: row i of a group.
type source struct {
	group int32
	i     int32
}

// planner turns the operations on each key into net effects.
type planner struct {
	schema   *schema.Schema
	groups   []Group
	found    []rowset.Found
	unfit    vector.Bitmap // keys whose operations are passed over; nil: none
	counts   Counts
	failures []Failure
	put      pending            // rows put, by group
	set      pending            // rows set, by group
	del      []int32            // keys deleted
	merged   map[string]*effect // of keys with several operations, by kind and columns
	order    []string           // keys of merged in order of first use
	setCols  [][]int            // by group: the columns that its updates set
	skipped  []bool             // by group: immutable columns are given
}

// pending is rows whose one operation takes effect as it is.
type pending map[int32]*taken

type taken struct {
	rows []int32 // in the group
	keys []int32
}

func (p pending) add(s source, key int32) {
	t := p[s.group]
	if t == nil {
		t = &taken{}
		p[s.group] = t
	}
	t.rows, t.keys = append(t.rows, s.i), append(t.keys, key)
}

func newPlanner(s *schema.Schema, groups []Group, found []rowset.Found) *planner {
	p := &planner{schema: s, groups: groups, found: found, put: pending{}, set: pending{}, merged: map[string]*effect{}}
	p.setCols, p.skipped = make([][]int, len(groups)), make([]bool, len(groups))
	for i := range groups {
		for _, c := range groups[i].Columns {
			switch {
			case c < s.NumKey():
			case s.Column(c).Immutable:
				p.skipped[i] = true
			default:
				p.setCols[i] = append(p.setCols[i], c)
			}
		}
	}
	return p
}

// fail records that a row is left out.
func (p *planner) fail(s source, err error) {
	p.failures = append(p.failures, Failure{Row: p.groups[s.group].Rows[s.i], Err: err})
}

// key plans the operations on key k, in the order of the write.
func (p *planner) key(k int32, ops []source) {
	if p.unfit != nil && p.unfit.Get(int(k)) {
		p.counts.Ignored += int64(len(ops))
		return
	}
	live := p.found[k].RowSet != nil && p.found[k].Live
	if len(ops) == 1 {
		p.single(k, ops[0], live)
		return
	}
	m := merge1{p: p, was: live, live: live}
	for _, s := range ops {
		m.apply(s)
	}
	m.finish(k)
}

// admit judges an operation by the state of its key. It reports whether the
// operation takes effect.
func (p *planner) admit(s source, live bool) bool {
	kind := p.groups[s.group].Kind
	var err error
	switch {
	case live && kind <= InsertIgnore:
		err = ErrAlreadyPresent
	case !live && kind >= Update:
		err = ErrNotFound
	}
	switch {
	case err != nil && kind.ignores():
		p.counts.Ignored++
		return false
	case err != nil:
		p.fail(s, err)
		return false
	case live && kind.Updates():
		return p.admitUpdate(s, kind)
	}
	return true
}

// admitUpdate judges an update of a live row by its columns.
func (p *planner) admitUpdate(s source, kind OpKind) bool {
	switch {
	case p.skipped[s.group] && !kind.ignores():
		p.fail(s, ErrImmutable)
		return false
	case len(p.setCols[s.group]) > 0:
		return true
	case kind <= UpsertIgnore:
		p.counts.Unchanged++
		return false
	}
	p.fail(s, fmt.Errorf("%w: nothing to update", schema.ErrInvalidArgument))
	return false
}

// single plans the only operation on a key.
func (p *planner) single(k int32, s source, live bool) {
	if !p.admit(s, live) {
		return
	}
	switch kind := p.groups[s.group].Kind; {
	case kind >= Delete:
		p.counts.Deleted++
		p.del = append(p.del, k)
	case live:
		p.counts.Updated++
		p.set.add(s, k)
	default:
		p.counts.Inserted++
		p.put.add(s, k)
	}
}

// merge1 folds several operations on one key.
type merge1 struct {
	p         *planner
	was, live bool
	image     []schema.Value       // of a row put in this write, in schema order; nil: none
	set       map[int]schema.Value // columns set on the stored row
}

func (m *merge1) apply(s source) {
	if !m.p.admit(s, m.live) {
		return
	}
	g := &m.p.groups[s.group]
	switch {
	case g.Kind >= Delete:
		m.p.counts.Deleted++
		m.live, m.image, m.set = false, nil, nil
	case !m.live:
		m.p.counts.Inserted++
		m.live, m.image, m.set = true, m.p.fullImage(g, int(s.i)), nil
	default:
		m.p.counts.Updated++
		m.update(g, int(s.i), m.p.setCols[s.group])
	}
}

func (m *merge1) update(g *Group, i int, columns []int) {
	if m.set == nil {
		m.set = map[int]schema.Value{}
	}
	for _, c := range columns {
		v, _ := g.cell(c, i)
		if m.image != nil {
			m.image[c] = v
		} else {
			m.set[c] = v
		}
	}
}

// fullImage returns the cells of an inserted row, defaults filled in.
func (p *planner) fullImage(g *Group, i int) []schema.Value {
	image := make([]schema.Value, p.schema.Len())
	for c := range image {
		v, given := g.cell(c, i)
		if !given {
			v = p.schema.Column(c).Default
		}
		image[c] = v
	}
	return image
}

// finish adds the net effect on key k.
func (m *merge1) finish(k int32) {
	switch {
	case m.was && !m.live:
		m.p.del = append(m.p.del, k)
	case m.live && !m.was:
		m.p.addMerged(rowset.ChangePut, k, allColumns(0, len(m.image)), m.image)
	case m.live && m.image != nil: // deleted and put back: every column is new
		nk := m.p.schema.NumKey()
		m.p.addMerged(rowset.ChangeSet, k, allColumns(nk, len(m.image)), m.image[nk:])
	case m.live && len(m.set) > 0:
		var columns []int
		for c := range m.set {
			columns = append(columns, c)
		}
		slices.Sort(columns)
		values := make([]schema.Value, len(columns))
		for i, c := range columns {
			values[i] = m.set[c]
		}
		m.p.addMerged(rowset.ChangeSet, k, columns, values)
	}
}

func allColumns(from, to int) []int {
	out := make([]int, 0, to-from)
	for c := from; c < to; c++ {
		out = append(out, c)
	}
	return out
}

// addMerged adds a row to the effect of the same kind and columns.
func (p *planner) addMerged(kind rowset.ChangeKind, k int32, columns []int, values []schema.Value) {
	if len(columns) == 0 {
		return // a table of key columns only: putting a row back changes nothing
	}
	id := fmt.Sprint(kind, columns)
	e := p.merged[id]
	if e == nil {
		e = &effect{kind: kind, columns: columns}
		for _, c := range columns {
			e.values = append(e.values, vector.New(p.schema.Column(c).Kind(), 1))
		}
		p.merged[id], p.order = e, append(p.order, id)
	}
	for i, v := range values {
		_ = e.values[i].Append(v) // a part of a batch, which fits
	}
	e.keys = append(e.keys, k)
}

// effects returns the net effects of all keys.
func (p *planner) effects() ([]effect, error) {
	var out []effect
	for g := range p.groups {
		if t := p.put[int32(g)]; t != nil {
			e, err := p.putEffect(&p.groups[g], t)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		if t := p.set[int32(g)]; t != nil {
			e, err := p.setEffect(g, t)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	for _, id := range p.order {
		out = append(out, *p.merged[id])
	}
	if len(p.del) > 0 {
		out = append(out, effect{kind: rowset.ChangeDel, keys: p.del})
	}
	return out, nil
}

func (p *planner) putEffect(g *Group, t *taken) (effect, error) {
	e := effect{kind: rowset.ChangePut, columns: allColumns(0, p.schema.Len()), keys: t.keys}
	for _, c := range e.columns {
		v := vector.New(p.schema.Column(c).Kind(), len(t.rows))
		var err error
		if k, given := slices.BinarySearch(g.Columns, c); given {
			err = v.AppendRows(g.Values[k], t.rows)
		} else {
			err = v.AppendConst(p.schema.Column(c).Default, len(t.rows))
		}
		if err != nil {
			return e, err
		}
		e.values = append(e.values, v)
	}
	return e, nil
}

func (p *planner) setEffect(group int, t *taken) (effect, error) {
	g := &p.groups[group]
	e := effect{kind: rowset.ChangeSet, columns: p.setCols[group], keys: t.keys}
	for _, c := range e.columns {
		k, _ := slices.BinarySearch(g.Columns, c)
		v := vector.New(p.schema.Column(c).Kind(), len(t.rows))
		if err := v.AppendRows(g.Values[k], t.rows); err != nil {
			return e, err
		}
		e.values = append(e.values, v)
	}
	return e, nil
}
