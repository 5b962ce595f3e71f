package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// longEdits has edits of several blocks and enough bytes for several generations of
// a manifest that rotates at rotateSmall.
func longEdits() []*Edit {
	edits := testEdits()
	r := newRand(5)
	for i := range 8 {
		key := make([]byte, []int{10, 5000, 20_000}[i%3])
		for j := range key {
			key[j] = byte(r.IntN(4)) // with zeroes
		}
		edits = append(edits, &Edit{AddRowSets: []TabletRowSet{{1, &rowset.Meta{ID: rowset.ID(100 + i), MinKey: key}}}})
		if i > 1 {
			edits[len(edits)-1].RemoveRowSets = []RowSetRef{{1, rowset.ID(98 + i)}}
		}
	}
	return edits
}

const rotateSmall = 30_000

// shrink makes m begin new generations early.
func shrink(m *Manifest) {
	m.apply.minRotate = rotateSmall
	m.scheduleLocked()
}

// crashes returns the file systems that a power cut now may leave.
func crashes(m *vfs.Mem, n int64) []*vfs.Mem {
	out := []*vfs.Mem{m.CrashClone(vfs.CrashOptions{})}
	for seed := range uint64(2) {
		out = append(out, m.CrashClone(vfs.CrashOptions{Rand: rand.New(rand.NewPCG(seed, uint64(n)))}))
	}
	return out
}

// requireRecovery opens f and requires the state after acked edits, or, when one more
// was under way, after that; then it goes on with the next edit and opens again.
func requireRecovery(t *testing.T, f *vfs.Mem, want []*State, edits []*Edit, acked int, underWay bool) {
	t.Helper()
	m, err := Open(f, "/", false)
	must(t, err)
	defer m.Close()
	shrink(m)
	at := acked
	if underWay && acked+1 < len(want) && sameState(m.State(), want[acked+1]) {
		at++
	}
	requireState(t, m, want[at])
	if at == len(edits) {
		return
	}
	must(t, m.Apply(ctx, edits[at]))
	again, err := Open(f.CrashClone(vfs.CrashOptions{}), "/", true)
	must(t, err)
	requireState(t, again, want[at+1])
}

// newHooked returns a new manifest that was opened through a file system with hooks, and what
// that stands on.
func newHooked(t *testing.T) (*vfs.Mem, *errorfs.FS, *Manifest) {
	t.Helper()
	mem, m := newManifest(t)
	must(t, m.Close())
	f := errorfs.Wrap(mem)
	m, err := Open(f, "/", false)
	must(t, err)
	return mem, f, m
}

// TestPowerCutAtEveryCall also covers a crash at each step of beginning a generation.
func TestPowerCutAtEveryCall(t *testing.T) {
	edits := longEdits()
	want := states(t, edits)
	mem, f, m := newHooked(t)
	shrink(m)
	acked, cuts := 0, 0
	f.SetHook(func(c errorfs.Call) error {
		for _, clone := range crashes(mem, c.N) {
			requireRecovery(t, clone, want, edits, acked, true)
			cuts++
		}
		return nil
	})
	for _, e := range edits {
		must(t, m.Apply(ctx, e))
		acked++
	}
	f.SetHook(nil)
	for _, clone := range crashes(mem, 0) {
		requireRecovery(t, clone, want, edits, acked, false)
	}
	if s := m.Stats(); s.Generation < 3 || cuts < 150 {
		t.Fatalf("%d cuts, %+v", cuts, s)
	}
	must(t, m.Close())
}

// The slot of a mark is the last of a block of the disk and a power cut keeps the edit behind it,
// but not the mark: what proves later that the edit is synced must not make that damage.
func TestPowerCutKeepsTheEditButNotTheMarkBeforeIt(t *testing.T) {
	pin := func(n int) *Edit { return &Edit{Pins: []Pin{{strings.Repeat("p", n), 1}}} }
	long := 1
	for ; ; long++ {
		_, m := newManifest(t)
		must(t, m.Apply(ctx, pin(long)))
		off := m.apply.off
		must(t, m.Close())
		if off%4096 == 0 {
			break
		}
	}
	edits := []*Edit{pin(long), pin(1), pin(2)}
	want := states(t, edits)
	mem, f, m := newHooked(t)
	must(t, m.Apply(ctx, edits[0]))
	kept := 0
	f.SetHook(func(c errorfs.Call) error {
		for seed := range uint64(16) {
			clone := mem.CrashClone(vfs.CrashOptions{Rand: rand.New(rand.NewPCG(seed, 3))})
			for range 2 {
				again, err := Open(clone, "/", false)
				must(t, err)
				if sameState(again.State(), want[2]) {
					kept++
				}
				must(t, again.Close())
			}
			requireRecovery(t, clone, want, edits, 1, true)
		}
		return nil
	})
	must(t, m.Apply(ctx, edits[1]))
	f.SetHook(nil)
	if kept == 0 {
		t.Fatal("no power cut kept the edit")
	}
	must(t, m.Close())
}

// TestFailureAtEveryCall fails one call, all from one on, or cuts one write short. An
// error without ErrFailed means that nothing changed, also after a power cut.
func TestFailureAtEveryCall(t *testing.T) {
	edits := longEdits()
	want := states(t, edits)
	for name, hook := range map[string]func(n int64) errorfs.Hook{
		"once":    func(n int64) errorfs.Hook { return errorfs.Fail(syscall.EIO, n, n, errorfs.Any) },
		"forever": func(n int64) errorfs.Hook { return errorfs.Fail(syscall.ENOSPC, n, 0, errorfs.Any) },
		"short":   func(n int64) errorfs.Hook { return errorfs.Short(syscall.ENOSPC, n, errorfs.Any) },
	} {
		n := int64(1)
		for failAt(t, edits, want, n, hook(n), name != "forever") {
			n++
		}
		if n < 35 {
			t.Errorf("%s: only %d calls", name, n)
		}
	}
}

// failAt plays the edits under a hook that fails call n; false when there is none.
// Each refused edit is tried a second time, and then succeeds if the fault passes.
func failAt(t *testing.T, edits []*Edit, want []*State, n int64, hook errorfs.Hook, passes bool) (fired bool) {
	mem, f, m := newHooked(t)
	shrink(m)
	f.SetHook(func(c errorfs.Call) error {
		err := hook(c)
		fired = fired || err != nil
		return err
	})
	acked, unknown := 0, false
	for tries := 0; acked < len(edits) && tries < 2 && !unknown; {
		err := m.Apply(ctx, edits[acked])
		switch {
		case err == nil:
			acked++
			tries = 0
		case errors.Is(err, ErrFailed):
			unknown = true
		default:
			tries++
			requireRecovery(t, mem.CrashClone(vfs.CrashOptions{}), want, edits, acked, false)
		}
	}
	if passes && !unknown && acked < len(edits) {
		t.Fatalf("call %d: edit %d still refused", n, acked)
	}
	for _, clone := range crashes(mem, n) {
		requireRecovery(t, clone, want, edits, acked, unknown)
	}
	f.SetHook(nil)
	m.Close()
	requireRecovery(t, mem, want, edits, acked, unknown)
	return fired
}

// TestKilledThenPowerCut kills the process at every call: the next open sees bytes that
// are in memory only, and must sync them before it relies on them.
func TestKilledThenPowerCut(t *testing.T) {
	edits := longEdits()
	for n := int64(1); ; n++ {
		mem, m := newManifest(t)
		must(t, m.Close())
		f := errorfs.Wrap(mem)
		m, err := Open(f, "/", false)
		must(t, err)
		shrink(m)
		f.SetHook(errorfs.Fail(syscall.EIO, n, 0, errorfs.Any))
		for _, e := range edits {
			if err = m.Apply(ctx, e); err != nil {
				break
			}
		}
		m, openErr := Open(mem, "/", false)
		must(t, openErr)
		for _, clone := range crashes(mem, n) {
			c, err := Open(clone, "/", false)
			must(t, err)
			requireState(t, c, m.State())
		}
		if err == nil {
			return
		}
	}
}

func TestCrashDuringCreate(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("/wal"))
	f := errorfs.Wrap(mem)
	interrupted := 0
	f.SetHook(func(c errorfs.Call) error {
		for _, clone := range crashes(mem, c.N) {
			_, err := Open(clone, "/", true)
			if errors.Is(err, ErrInterrupted) && errors.Is(err, vfs.ErrCorruption) {
				interrupted++
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(c, err)
			}
			m, createErr := Create(clone, "/", testStore)
			if (createErr == nil) != (err != nil) || err == nil && !errors.Is(createErr, fs.ErrExist) {
				t.Fatalf("%s: open says %v, create says %v", c, err, createErr)
			}
			if createErr == nil {
				must(t, m.Apply(ctx, &Edit{ClockFloor: 3}))
				must(t, m.Close())
			}
		}
		return nil
	})
	m, err := Create(f, "/", testStore)
	must(t, err)
	if interrupted == 0 {
		t.Fatal("no cut left traces")
	}
	must(t, m.Close())
}

// TestC72NoStoreBesideData keeps Create from replacing a manifest that lost its contents.
func TestC72NoStoreBesideData(t *testing.T) {
	f := vfs.NewMem()
	put(t, f, Name(1), "")
	put(t, f, "000017.rowset", "data")
	if _, err := Create(f, "/", testStore); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	must(t, f.Remove("000017.rowset"))
	m, err := Create(f, "/", testStore)
	must(t, err)
	must(t, m.Close())
}

// sample returns the bytes of a manifest with a history and its final state.
func sample(t testing.TB) (string, *State) {
	f, m := newManifest(t)
	applyAll(t, m, testEdits())
	must(t, m.Close())
	return read(t, f, Name(1)), m.State()
}

// requireDetected reads the changed contents: damage is found and placed, or harmless.
// An incomplete snapshot without an older generation is found too.
func requireDetected(t *testing.T, what string, changed []byte, want *State) (detected bool) {
	t.Helper()
	p := &parser{b: changed, path: "m", seed: seed(1)}
	err := p.parse(1)
	var c *vfs.CorruptionError
	switch {
	case err == nil && !sameState(p.state, want):
		t.Fatalf("%s: another state without an error", what)
	case err == nil:
		return false
	case err == errIncomplete:
	case !errors.As(err, &c) || c.Path != "m" || c.Section == "" || c.Offset < 0 || c.Offset > int64(len(changed)):
		t.Fatalf("%s: %v", what, err)
	}
	return true
}

// usedBytes returns the length without the zeroes ahead.
func usedBytes(b []byte) int {
	for b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return len(b)
}

func TestC75EveryByteFlipped(t *testing.T) {
	contents, want := sample(t)
	b := []byte(contents)
	used := usedBytes(b)
	harmless := 0
	for i := 0; i < len(b); i++ {
		if i > used+600 {
			i = min(i+501, len(b)-1)
		}
		for _, x := range []byte{1 << (i % 8), 0xff} {
			b[i] ^= x
			if !requireDetected(t, fmt.Sprint("byte ", i), b, want) && i < used {
				harmless++
			}
			b[i] ^= x
		}
	}
	if harmless > 0 {
		t.Fatalf("%d harmless flips", harmless)
	}
}

// TestC75EveryChunkZeroed zeroes aligned chunks. What cannot be seen is the loss of the
// last edit together with its mark.
func TestC75EveryChunkZeroed(t *testing.T) {
	contents, want := sample(t)
	for _, size := range []int{16, 64} {
		for i := 0; i+size < usedBytes([]byte(contents)); i += size {
			b := []byte(contents)
			clear(b[i : i+size])
			requireDetected(t, fmt.Sprint(size, " bytes at ", i), b, want)
		}
	}
}

func TestC72BadContents(t *testing.T) {
	contents, want := sample(t)
	garbage := make([]byte, 5000)
	r := newRand(1)
	for i := range garbage {
		garbage[i] = byte(r.Uint32())
	}
	for name, c := range map[string]struct {
		b       string
		damaged bool
	}{
		"empty":    {"", true},
		"zeroes":   {string(make([]byte, 5000)), true},
		"garbage":  {string(garbage), true},
		"doubled":  {contents + contents, false},
		"half":     {contents[:900], true},
		"appended": {contents + string(garbage), false},
		"whole":    {contents, false},
	} {
		if got := requireDetected(t, name, []byte(c.b), want); got != c.damaged {
			t.Errorf("%s: detected %v", name, got)
		}
		f := vfs.NewMem()
		put(t, f, Name(1), c.b)
		m, err := Open(f, "/", false)
		if c.damaged != errors.Is(err, vfs.ErrCorruption) {
			t.Errorf("%s: open says %v", name, err)
		}
		if err == nil { // the tail was cleared
			must(t, m.Apply(ctx, &Edit{ClockFloor: 1000}))
			must(t, m.Close())
			m, err = Open(f, "/", true)
			must(t, err)
			if m.State().ClockFloor != 1000 {
				t.Errorf("%s: edit lost", name)
			}
		}
	}
	for n := range len(contents) {
		if n > 3000 {
			break
		}
		requireDetected(t, fmt.Sprint("cut at ", n), []byte(contents[:n]), want)
	}
}

// TestC72OlderGeneration damages the newest generation while an older one is there.
func TestC72OlderGeneration(t *testing.T) {
	old, oldState := sample(t)
	f, m := newManifest(t)
	applyAll(t, m, testEdits()[:7])
	m.tryRotateLocked()
	must(t, m.Apply(ctx, testEdits()[7]))
	newState := m.State()
	must(t, m.Close())
	newest := read(t, f, Name(2))
	p := &parser{b: []byte(newest), seed: seed(2)}
	must(t, p.parse(2))
	if p.snap < 600 {
		t.Fatal("the snapshot fits a sector")
	}
	open := func(b string) (*State, error) {
		f := vfs.NewMem()
		put(t, f, Name(1), old)
		put(t, f, Name(2), b)
		m, err := Open(f, "/", false)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		if names, _ := f.List("/"); len(names) != 1 {
			t.Fatal("generations left", names)
		}
		return m.State(), nil
	}
	for name, c := range map[string]struct {
		b    string
		want *State // nil: Corruption
	}{
		"whole":              {newest, newState},
		"empty":              {"", oldState},
		"zeroes":             {string(make([]byte, 4096)), oldState},
		"never synced":       {string(make([]byte, 512)) + newest[512:p.snap], oldState},
		"damaged snapshot":   {newest[:100] + "x" + newest[101:], nil},
		"lost after it held": {string(make([]byte, 512)) + newest[512:], nil},
		"garbage":            {"garbage", nil},
	} {
		got, err := open(c.b)
		if c.want == nil && errors.Is(err, vfs.ErrCorruption) {
			continue
		}
		if err != nil || c.want == nil || !sameState(got, c.want) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

// TestStoreOfNewerFormat refuses fields that must be understood and skips others.
func TestStoreOfNewerFormat(t *testing.T) {
	e := &Edit{ClockFloor: 5}
	var skipped, refused Edit
	f := fields(e.AppendTo(nil))
	f.string(1000, "skip me")
	if err := skipped.Decode(f); err != nil || skipped.ClockFloor != 5 {
		t.Fatal(err)
	}
	f.string(1001, "understand me")
	if err := refused.Decode(f); !errors.Is(err, vfs.ErrNotSupported) || errors.Is(err, vfs.ErrCorruption) {
		t.Fatal(err)
	}
	contents, _ := sample(t)
	b := []byte(contents)
	end := &parser{b: b, seed: seed(1)}
	must(t, end.parse(1))
	b = slices.Replace(b, int(end.off), int(end.off)+len(appendFrame(nil, 0, 0, FrameEdit, f)), appendFrame(nil, seed(1), end.off, FrameEdit, f)...)
	m := vfs.NewMem()
	put(t, m, Name(1), string(b))
	if _, err := Open(m, "/", true); !errors.Is(err, vfs.ErrNotSupported) {
		t.Fatal(err)
	}
}
