package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"syscall"
	"testing"

	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

var ctx = context.Background()

var testStore = binfmt.UUID{1, 2, 3, 15: 4}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newManifest returns a manifest in the root directory of a new file system.
func newManifest(t testing.TB) (*vfs.Mem, *Manifest) {
	t.Helper()
	m := vfs.NewMemOptions(vfs.MemOptions{WindowsRules: true})
	man, err := Create(m, "/", testStore)
	must(t, err)
	return m, man
}

func testTable(id TableID) *Table {
	return &Table{ID: id, Name: fmt.Sprint("t", id), State: TableLive, NextColumn: 2, Versions: []SchemaVersion{{
		Version: 1, At: 5, NumKey: 1, Columns: []Column{
			{Column: schema.Column{ID: 0, Name: "k", Type: schema.Int64}},
			{Column: schema.Column{ID: 1, Name: "v", Type: schema.String, Nullable: true, Default: schema.StringValue("x")}},
		}}}}
}

// testEdits is a history of a small store: edit i is valid after those before it.
func testEdits() []*Edit {
	edits := []*Edit{
		{Tables: []*Table{testTable(1)}, AddTablets: []*Tablet{{ID: 1, Table: 1, State: TabletLive}}},
		{Log: &LogState{FirstSegment: 3, Ends: []LogEnd{{2, 777}}}, ClockFloor: 99, Pins: []Pin{{"backup", 12}}},
	}
	for i := range 6 {
		n := rowset.FileNum(10 + i)
		meta := &rowset.Meta{ID: rowset.ID(i + 1), Rows: 7, MinKey: make([]byte, 100*i), MaxKey: []byte("z"), DurableTo: 100,
			Sections: []rowset.Section{{File: n, Offset: 64, Length: 36, Kind: rowset.SectionColumn, Column: 1}}}
		for j := range meta.MinKey {
			meta.MinKey[j] = byte(j%250 + 1)
		}
		e := &Edit{AddFiles: []File{{Num: n, Kind: binfmt.FileRowSet, Size: 100, HasChecksum: true, Checksum: 5}},
			AddRowSets:    []TabletRowSet{{1, meta}},
			UpdateTablets: []TabletUpdate{{ID: 1, Watermarks: Watermarks{FlushedTo: 100, NextAutoIncrement: int64(i)}}}}
		if i > 2 {
			e.RemoveRowSets = []RowSetRef{{1, rowset.ID(i - 2)}}
			e.RemoveFiles = []rowset.FileNum{n - 3}
		}
		edits = append(edits, e)
	}
	return append(edits, &Edit{RemovePins: []string{"backup"}, Tables: []*Table{testTable(2)}},
		&Edit{RemoveTables: []TableID{2}})
}

func applyAll(t testing.TB, m *Manifest, edits []*Edit) {
	t.Helper()
	for _, e := range edits {
		must(t, m.Apply(ctx, e))
	}
}

func requireState(t testing.TB, m *Manifest, want *State) {
	t.Helper()
	if got := m.State(); !sameState(got, want) {
		t.Fatalf("state differs\n got %+v\nwant %+v", got, want)
	}
}

// sameState compares what matters: reference counts of 0 do not.
func sameState(a, b *State) bool {
	x, y := *a, *b
	x.refs, y.refs = nil, nil
	return reflect.DeepEqual(&x, &y)
}

// states returns the state before the first edit and after each.
func states(t testing.TB, edits []*Edit) []*State {
	t.Helper()
	_, m := newManifest(t)
	out := []*State{m.State()}
	for _, e := range edits {
		must(t, m.Apply(ctx, e))
		out = append(out, m.State())
	}
	return out
}

func TestReopen(t *testing.T) {
	f, m := newManifest(t)
	applyAll(t, m, testEdits())
	want := m.State()
	if len(want.RowSets[1]) != 3 || want.Tablets[1].MaxDurable != 100 || want.NextFile != 16 || want.NextRowSet != 7 || want.NextTable != 3 {
		t.Fatalf("%+v", want)
	}
	must(t, m.Close())
	for _, readOnly := range []bool{true, false} {
		m, err := Open(f.CrashClone(vfs.CrashOptions{}), "/", readOnly)
		must(t, err)
		requireState(t, m, want)
		must(t, m.Close())
	}
	if err := m.Apply(ctx, &Edit{ClockFloor: 1}); !errors.Is(err, fs.ErrClosed) {
		t.Fatal(err)
	}
	if f.OpenFiles() != 0 {
		t.Fatal("files left open")
	}
}

func TestStateIsImmutable(t *testing.T) {
	_, m := newManifest(t)
	edits := testEdits()
	kept := []*State{m.State()}
	for _, e := range edits {
		must(t, m.Apply(ctx, e))
		kept = append(kept, m.State())
	}
	for i, want := range states(t, testEdits()) {
		if !sameState(kept[i], want) {
			t.Fatalf("state %d changed later", i)
		}
	}
	edits[2].AddRowSets[0].Meta.Rows = 1234
	if m.State().RowSets[1][4].Rows != 7 {
		t.Fatal("the state shares memory with the edit")
	}
}

func TestRefusedEdits(t *testing.T) {
	_, m := newManifest(t)
	applyAll(t, m, testEdits()[:3])
	before := m.State()
	meta := func(id rowset.ID, durable, off int) *rowset.Meta {
		return &rowset.Meta{ID: id, DurableTo: 0, Sections: []rowset.Section{{File: 10, Offset: int64(off), Length: 90}}}
	}
	for name, e := range map[string]*Edit{
		"tablet of no table":       {AddTablets: []*Tablet{{ID: 9, Table: 9}}},
		"tablet twice":             {AddTablets: []*Tablet{{ID: 1, Table: 1}}},
		"unknown tablet":           {UpdateTablets: []TabletUpdate{{ID: 9}}},
		"rowset of no tablet":      {AddRowSets: []TabletRowSet{{9, meta(5, 0, 0)}}},
		"rowset twice":             {AddRowSets: []TabletRowSet{{1, meta(1, 0, 0)}}},
		"section outside its file": {AddRowSets: []TabletRowSet{{1, meta(5, 0, 11)}}},
		"durable time falls":       {UpdateRowSets: []TabletRowSet{{1, meta(1, 0, 0)}}},
		"unknown rowset":           {RemoveRowSets: []RowSetRef{{1, 9}}},
		"file in use":              {RemoveFiles: []rowset.FileNum{10}},
		"file twice":               {AddFiles: []File{{Num: 10}}},
		"table with tablets":       {RemoveTables: []TableID{1}},
		"table without schema":     {Tables: []*Table{{ID: 5}}},
		"unknown pin":              {RemovePins: []string{"none"}},
		"cannot be read back":      {AddFiles: []File{{Num: 99, Size: -1}}},
		"half of it is good":       {ClockFloor: 1 << 40, RemoveTablets: []TabletID{1}, RemoveTables: []TableID{8}},
	} {
		if err := m.Apply(ctx, e); err == nil || m.State() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, m.Apply(ctx, &Edit{RemoveTablets: []TabletID{1}, RemoveFiles: []rowset.FileNum{10}, RemoveTables: []TableID{1}}))
	if s := m.State(); len(s.Files)+len(s.Tables)+len(s.RowSets)+len(s.Tablets) != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestContextEnded(t *testing.T) {
	_, m := newManifest(t)
	c, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.Apply(c, &Edit{ClockFloor: 7}); !errors.Is(err, context.Canceled) || m.State().ClockFloor != 0 {
		t.Fatal(err)
	}
}

func TestCreateRefusesAStore(t *testing.T) {
	f, m := newManifest(t)
	must(t, m.Close())
	if _, err := Create(f, "/", testStore); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

func TestC89OpenOfNothing(t *testing.T) {
	f := vfs.NewMem()
	for _, dir := range []string{"/", "/none"} {
		if _, err := Open(f, dir, true); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func TestReadOnlyWritesNothing(t *testing.T) {
	f, m := newManifest(t)
	applyAll(t, m, testEdits())
	must(t, m.Close())
	file, err := f.OpenWrite("/"+Name(1), vfs.KindManifest)
	must(t, err)
	size, _ := file.Size()
	file.WriteAt([]byte{7}, size-1) // something for a writer to clear
	file.Close()
	before := read(t, f, Name(1))
	r, err := Open(noWrites{f, t}, "/", true)
	must(t, err)
	if err := r.Apply(ctx, &Edit{ClockFloor: 5}); !errors.Is(err, ErrReadOnly) {
		t.Fatal(err)
	}
	must(t, r.Close())
	if read(t, f, Name(1)) != before {
		t.Fatal("file changed")
	}
}

// noWrites fails the test when anything is changed.
type noWrites struct {
	vfs.FS
	t *testing.T
}

func (n noWrites) Create(name string, _ vfs.Kind) (vfs.File, error) {
	n.t.Fatal("create")
	return nil, nil
}
func (n noWrites) OpenWrite(name string, _ vfs.Kind) (vfs.File, error) {
	n.t.Fatal("write")
	return nil, nil
}
func (n noWrites) Remove(string) error  { n.t.Fatal("remove"); return nil }
func (n noWrites) SyncDir(string) error { n.t.Fatal("sync"); return nil }

func read(t testing.TB, f vfs.FS, name string) string {
	t.Helper()
	b, err := readFile(f, f.Join("/", name))
	must(t, err)
	return string(b)
}

func put(t testing.TB, f vfs.FS, name, contents string) {
	t.Helper()
	file, err := f.Create(f.Join("/", name), vfs.KindManifest)
	must(t, err)
	_, err = file.WriteAt([]byte(contents), 0)
	must(t, err)
	must(t, file.Sync())
	must(t, file.Close())
	must(t, f.SyncDir("/"))
}

func TestNewGenerations(t *testing.T) {
	f, m := newManifest(t)
	m.apply.minRotate = 2000
	m.scheduleLocked()
	edits := testEdits()
	applyAll(t, m, edits)
	for range 300 {
		must(t, m.Apply(ctx, &Edit{Pins: []Pin{{"p", 7}}}))
	}
	s := m.Stats()
	if s.Generation < 3 || s.RotateError != nil || s.Bytes > 8000 {
		t.Fatalf("%+v", s)
	}
	if names, _ := f.List("/"); !reflect.DeepEqual(names, []string{Name(s.Generation)}) {
		t.Fatal(names)
	}
	want := m.State()
	must(t, m.Close())
	m, err := Open(f, "/", false)
	must(t, err)
	requireState(t, m, want)
	must(t, m.Close())
}

func TestDump(t *testing.T) {
	f, m := newManifest(t)
	edits := testEdits()
	applyAll(t, m, edits)
	defer m.Close()
	n := 0
	s, err := Dump(f, "/", 1, func(r Record) error {
		if r.Type == FrameEdit {
			n++
		}
		return nil
	})
	if err != nil || n != len(edits) {
		t.Fatal(n, err)
	}
	requireState(t, m, s)
}

// TestTrap7FullDisk fills the disk and requires edits that only remove things to go on.
func TestTrap7FullDisk(t *testing.T) {
	f, m := newManifest(t)
	applyAll(t, m, testEdits())
	f.SetCapacity(1)
	added := 0
	for i := 0; ; i++ {
		n := rowset.FileNum(1000 + i)
		err := m.Apply(ctx, &Edit{AddFiles: []File{{Num: n, Size: 1}}})
		if errors.Is(err, syscall.ENOSPC) && !errors.Is(err, ErrFailed) {
			break
		}
		must(t, err)
		added++
	}
	for i := range min(added, 300) {
		must(t, m.Apply(ctx, &Edit{RemoveFiles: []rowset.FileNum{rowset.FileNum(1000 + i)}}))
	}
	want := m.State()
	c, err := Open(f.CrashClone(vfs.CrashOptions{}), "/", false)
	must(t, err)
	requireState(t, c, want)
	f.SetCapacity(0)
	must(t, m.Apply(ctx, &Edit{AddFiles: []File{{Num: 9999, Size: 1}}}))
	must(t, m.Close())
}

func TestNames(t *testing.T) {
	for name, want := range map[string]uint64{"MANIFEST-000001": 1, "MANIFEST-1234567": 1234567, "MANIFEST-1": 0, "MANIFEST-000000": 0,
		"MANIFEST-00000x": 0, "MANIFEST-000001.bak": 0, "MANIFEST": 0, "MANIFEST-0000012": 0} {
		if n, ok := ParseName(name); n != want && ok || ok != (want != 0) {
			t.Errorf("%s: %d %v", name, n, ok)
		}
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }
