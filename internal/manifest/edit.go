package manifest

import (
	"fmt"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
)

// Edit is a change of the manifest that happens as a whole. Its parts take effect in
// the order of the fields.
type Edit struct {
	ClockFloor mvcc.Timestamp // 0 leaves it; it and the next numbers never fall
	NextFile   rowset.FileNum
	NextTable  TableID
	NextTablet TabletID
	NextRowSet rowset.ID
	Log        *LogState // nil leaves it

	Tables        []*Table // added, or replaced when the id is known
	AddTablets    []*Tablet
	UpdateTablets []TabletUpdate
	AddFiles      []File
	RemoveRowSets []RowSetRef
	UpdateRowSets []TabletRowSet // replaced; DurableTo must not fall
	AddRowSets    []TabletRowSet
	RemoveTablets []TabletID       // with their rowsets
	RemoveFiles   []rowset.FileNum // no rowset may refer to them any more
	RemoveTables  []TableID        // without tablets

	Pins       []Pin // added or replaced
	RemovePins []string
}

// TabletUpdate raises the watermarks of a tablet and changes its state, unless 0.
type TabletUpdate struct {
	ID    TabletID
	State TabletState
	Watermarks
}

// TabletRowSet is a rowset of a tablet.
type TabletRowSet struct {
	Tablet TabletID
	Meta   *rowset.Meta
}

// RowSetRef names a rowset of a tablet.
type RowSetRef struct {
	Tablet TabletID
	ID     rowset.ID
}

// Pin is a named snapshot.
type Pin struct {
	Name string
	Time mvcc.Timestamp
}

// grows reports whether the edit adds things. One that does not may use the last
// bytes on a full disk.
func (e *Edit) grows(s *State) bool {
	for _, t := range e.Tables {
		if s.Tables[t.ID] == nil {
			return true
		}
	}
	return len(e.AddTablets) > 0 || len(e.AddFiles) > 0 || len(e.AddRowSets) > 0
}

// touched returns the tablets whose set of rowsets the edit changes.
func (e *Edit) touched() map[TabletID]bool {
	ids := map[TabletID]bool{}
	for _, list := range [][]TabletRowSet{e.AddRowSets, e.UpdateRowSets} {
		for _, r := range list {
			ids[r.Tablet] = true
		}
	}
	for _, r := range e.RemoveRowSets {
		ids[r.Tablet] = true
	}
	for _, id := range e.RemoveTablets {
		ids[id] = true
	}
	return ids
}

// apply changes the state by e. After an error the state is useless.
func (s *State) apply(e *Edit) error {
	s.raise(e)
	if e.Log != nil {
		s.Log = *e.Log
	}
	for _, step := range []func(*Edit) error{s.applyTables, s.applyTablets, s.applyFiles, s.applyRowSets, s.applyRemovals} {
		if err := step(e); err != nil {
			return err
		}
	}
	return s.applyPins(e)
}

func (s *State) raise(e *Edit) {
	s.ClockFloor = max(s.ClockFloor, e.ClockFloor)
	s.NextFile, s.NextTable = max(s.NextFile, e.NextFile), max(s.NextTable, e.NextTable)
	s.NextTablet, s.NextRowSet = max(s.NextTablet, e.NextTablet), max(s.NextRowSet, e.NextRowSet)
}

func (s *State) applyTables(e *Edit) error {
	for _, t := range e.Tables {
		if len(t.Versions) == 0 {
			return fmt.Errorf("table %d has no schema", t.ID)
		}
		s.Tables[t.ID] = t
		s.NextTable = max(s.NextTable, t.ID+1)
	}
	return nil
}

func (s *State) applyTablets(e *Edit) error {
	for _, t := range e.AddTablets {
		if s.Tablets[t.ID] != nil {
			return fmt.Errorf("tablet %d exists", t.ID)
		}
		if s.Tables[t.Table] == nil {
			return fmt.Errorf("tablet %d of unknown table %d", t.ID, t.Table)
		}
		s.Tablets[t.ID] = t
		s.RowSets[t.ID] = map[rowset.ID]*rowset.Meta{}
		s.NextTablet = max(s.NextTablet, t.ID+1)
	}
	for _, u := range e.UpdateTablets {
		if err := s.updateTablet(u); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) updateTablet(u TabletUpdate) error {
	old := s.Tablets[u.ID]
	if old == nil {
		return fmt.Errorf("unknown tablet %d", u.ID)
	}
	t := *old
	t.Watermarks = t.raise(u.Watermarks)
	if u.State != 0 {
		t.State = u.State
	}
	s.Tablets[u.ID] = &t
	return nil
}

func (s *State) applyFiles(e *Edit) error {
	for _, f := range e.AddFiles {
		if _, ok := s.Files[f.Num]; ok {
			return fmt.Errorf("file %d exists", f.Num)
		}
		s.Files[f.Num] = f
		s.NextFile = max(s.NextFile, f.Num+1)
	}
	return nil
}

func (s *State) applyRowSets(e *Edit) error {
	for _, r := range e.RemoveRowSets {
		if err := s.removeRowSet(r); err != nil {
			return err
		}
	}
	for _, r := range e.UpdateRowSets {
		old := s.RowSets[r.Tablet][r.Meta.ID]
		if old != nil && r.Meta.DurableTo < old.DurableTo {
			return fmt.Errorf("rowset %d of tablet %d: durable time falls", r.Meta.ID, r.Tablet)
		}
		if err := s.removeRowSet(RowSetRef{r.Tablet, r.Meta.ID}); err != nil {
			return err
		}
		if err := s.addRowSet(r); err != nil {
			return err
		}
	}
	for _, r := range e.AddRowSets {
		if err := s.addRowSet(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) removeRowSet(r RowSetRef) error {
	m := s.RowSets[r.Tablet][r.ID]
	if m == nil {
		return fmt.Errorf("unknown rowset %d of tablet %d", r.ID, r.Tablet)
	}
	delete(s.RowSets[r.Tablet], r.ID)
	for _, sec := range sections(m) {
		s.refs[sec.File]--
	}
	return nil
}

// addRowSet adds a rowset whose sections lie within known files, and raises the
// tablet's MaxDurable to its DurableTo.
func (s *State) addRowSet(r TabletRowSet) error {
	tablet, m := s.RowSets[r.Tablet], r.Meta
	if tablet == nil {
		return fmt.Errorf("rowset %d of unknown tablet %d", m.ID, r.Tablet)
	}
	if tablet[m.ID] != nil {
		return fmt.Errorf("rowset %d of tablet %d exists", m.ID, r.Tablet)
	}
	for _, sec := range sections(m) {
		f, ok := s.Files[sec.File]
		if !ok || sec.Offset < 0 || sec.Length < 0 || sec.Offset > f.Size || sec.Length > f.Size-sec.Offset {
			return fmt.Errorf("rowset %d of tablet %d: section [%d, +%d) is not in file %d", m.ID, r.Tablet, sec.Offset, sec.Length, sec.File)
		}
		s.refs[sec.File]++
	}
	tablet[m.ID] = m
	s.NextRowSet = max(s.NextRowSet, m.ID+1)
	return s.updateTablet(TabletUpdate{ID: r.Tablet, Watermarks: Watermarks{MaxDurable: m.DurableTo}})
}

// sections returns all sections a rowset refers to.
func sections(m *rowset.Meta) []rowset.Section {
	out := append([]rowset.Section(nil), m.Sections...)
	for _, files := range [][]rowset.DeltaFile{m.Redo, m.Undo} {
		for i := range files {
			out = append(out, files[i].Section)
		}
	}
	return out
}

func (s *State) applyRemovals(e *Edit) error {
	for _, id := range e.RemoveTablets {
		if s.Tablets[id] == nil {
			return fmt.Errorf("unknown tablet %d", id)
		}
		for r := range s.RowSets[id] {
			if err := s.removeRowSet(RowSetRef{id, r}); err != nil {
				return err
			}
		}
		delete(s.Tablets, id)
		delete(s.RowSets, id)
	}
	for _, n := range e.RemoveFiles {
		if _, ok := s.Files[n]; !ok || s.refs[n] > 0 {
			return fmt.Errorf("file %d is unknown or in use", n)
		}
		delete(s.Files, n)
		delete(s.refs, n)
	}
	for _, id := range e.RemoveTables {
		if err := s.removeTable(id); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) removeTable(id TableID) error {
	if s.Tables[id] == nil {
		return fmt.Errorf("unknown table %d", id)
	}
	for _, t := range s.Tablets {
		if t.Table == id {
			return fmt.Errorf("table %d still has tablet %d", id, t.ID)
		}
	}
	delete(s.Tables, id)
	return nil
}

func (s *State) applyPins(e *Edit) error {
	for _, p := range e.Pins {
		s.Pins[p.Name] = p.Time
	}
	for _, name := range e.RemovePins {
		if _, ok := s.Pins[name]; !ok {
			return fmt.Errorf("unknown pin %.40q", name)
		}
		delete(s.Pins, name)
	}
	return nil
}
