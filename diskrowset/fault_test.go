package diskrowset

import (
	"context"
	"errors"
	"testing"

	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

var errFault = errors.New("injected fault")

// TestWriteFaults fails every operation of a write in turn: no file and no handle is left.
func TestWriteFaults(t *testing.T) {
	src := small(t, 3000)
	for n := int64(1); ; n++ {
		st := newStore(t, src.schema)
		fs := errorfs.Wrap(st.fs)
		// A failure to remove would itself leave a file behind.
		fs.SetHook(errorfs.Fail(errFault, n, n, errorfs.Ops(errorfs.OpCreate, errorfs.OpWrite, errorfs.OpSync, errorfs.OpClose)))
		o := st.options()
		o.FS, o.TargetBytes = fs, 6<<10
		all, err := Write(bg, src, o)
		names, _ := st.fs.List(dir)
		if err == nil {
			if len(all) < 2 || len(names) != len(all) {
				t.Fatalf("%d files, %v", len(all), names)
			}
			return
		}
		if !errors.Is(err, errFault) || len(names) > 0 || st.fs.OpenFiles() > 0 {
			t.Fatalf("operation %d: %v; left %v, %d open", n, err, names, st.fs.OpenFiles())
		}
	}
}

// TestReadFaults fails every read in turn: the call reports it, never a missing row or
// key, and the same call right after it succeeds (I3).
func TestReadFaults(t *testing.T) {
	src := small(t, 3000)
	st := newStore(t, src.schema)
	meta := st.one(src).meta
	want := answersOf(src)
	for n := int64(1); ; n++ {
		fs := errorfs.Wrap(st.fs)
		fs.SetHook(errorfs.Fail(errFault, n, n, errorfs.Ops(errorfs.OpOpen, errorfs.OpRead)))
		env := st.env
		env.Files = filecache.New(fs, 2)
		r, err := Open(meta, env)
		must(t, err)
		failed := false
		for {
			same, err := want.readAll(t, src, r)
			if err == nil {
				if !same {
					t.Fatalf("fault %d: another answer", n)
				}
				break
			}
			if failed || !errors.Is(err, errFault) {
				t.Fatalf("fault %d: %v", n, err)
			}
			failed = true
		}
		r.Close()
		if !failed {
			return
		}
	}
}

// TestThrottle: every byte of a file is announced before it is written, and an error ends
// the write.
func TestThrottle(t *testing.T) {
	src := small(t, 3000)
	st := newStore(t, src.schema)
	announced := int64(0)
	o := st.options()
	o.Throttle = func(_ context.Context, n int) error {
		announced += int64(n)
		return nil
	}
	all, err := Write(bg, src, o)
	must(t, err)
	size := int64(0)
	for _, w := range all {
		size += w.Size
	}
	if announced != size {
		t.Errorf("%d bytes announced of %d", announced, size)
	}
	before, _ := st.fs.List(dir)
	o.Throttle = func(context.Context, int) error { return errFault }
	if _, err := Write(bg, src, o); !errors.Is(err, errFault) {
		t.Errorf("throttle failed: %v", err)
	}
	if after, _ := st.fs.List(dir); len(after) != len(before) {
		t.Errorf("left %v, was %v", after, before)
	}
}
