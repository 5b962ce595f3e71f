package minikudu_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// dataFiles lists the files of rows and changes.
func dataFiles(m *vfs.Mem) ([]string, error) {
	names, err := m.List("store/data")
	slices.Sort(names)
	return names, err
}

// faulty runs a job in which the kth call that matches fails, and returns that call, nil
// when there are fewer.
func (d *during) faulty(job func(*during) error, hook func(error, int64, int64, errorfs.Match) errorfs.Hook, fault error, k int64, m errorfs.Match) (*errorfs.Call, error) {
	var hit atomic.Pointer[errorfs.Call]
	inner := hook(fault, k, k, m)
	d.fs.SetHook(func(c errorfs.Call) error {
		err := inner(c)
		if err != nil {
			hit.Store(&c)
		}
		return err
	})
	err := job(d)
	d.fs.SetHook(nil)
	call := hit.Load()
	switch {
	case call == nil:
		return nil, err
	case err != nil && !errors.Is(err, fault):
		return call, fmt.Errorf("not the fault: %w", err)
	}
	if cerr := d.check(); cerr != nil {
		return call, fmt.Errorf("reads after %w: %w", fault, cerr)
	}
	return call, d.retry(job, call, fault)
}

// retry requires that a job succeeds once the fault is gone, at once or, where nobody
// can know what is on disk, after an open.
func (d *during) retry(job func(*during) error, call *errorfs.Call, fault error) error {
	again := d.commit(ups("a", 7, 777), del("a", 8))
	if again == nil {
		again = job(d)
	}
	switch {
	case again == nil:
	case !final(*call) || !errors.Is(again, fault):
		return fmt.Errorf("not done when the fault was gone: %w", again)
	}
	if err := d.db.Close(); err != nil && !errors.Is(err, fault) {
		return err
	}
	left, err := dataFiles(d.mem)
	if err != nil {
		return err
	}
	if d.db, err = minikudu.Open("store", d.options()); err != nil {
		return err
	}
	if d.tab, err = d.db.Table("a"); err != nil {
		return err
	}
	used, err := dataFiles(d.mem)
	if err == nil && len(left) > len(used) && call.Op != errorfs.OpRemove && again == nil {
		err = fmt.Errorf("files were left: %v, of use are %v", left, used)
	}
	if err != nil {
		return err
	}
	if again != nil {
		if err := job(d); err != nil {
			return fmt.Errorf("after an open: %w", err)
		}
	}
	return d.finish()
}

// Every call of a flush and of a compaction fails once, in every way that calls of its
// kind fail. The caller gets the fault, readers see nothing of it, no file is left
// behind, and the next try succeeds.
func TestC80FaultAtEveryCallOfChanges(t *testing.T) {
	ops := errorfs.Ops
	for _, f := range []struct {
		name  string
		err   error
		hook  func(error, int64, int64, errorfs.Match) errorfs.Hook
		match errorfs.Match
	}{
		{"EIO", syscall.EIO, errorfs.Fail, errorfs.Any},
		{"ENOSPC", syscall.ENOSPC, errorfs.Fail, ops(errorfs.OpCreate, errorfs.OpWrite, errorfs.OpPreallocate)},
		{"short write", syscall.ENOSPC, shortHook, errorfs.Any},
	} {
		for _, c := range duringCases {
			t.Run(f.name+" in "+c.name, func(t *testing.T) {
				step := int64(5)
				if full() {
					step = 1
				}
				tried := 0
				for k := 1 + testkit.Rand(t).Int64N(step); ; k += step {
					d, err := newDuring(c.setup)
					fatal(t, err)
					call, err := d.faulty(c.job, f.hook, f.err, k, f.match)
					if err != nil {
						t.Fatalf("call %d, %v: %v", k, call, err)
					}
					if call == nil {
						mustClose(t, d.db)
						break
					}
					tried++
				}
				if full() && tried < 3 {
					t.Errorf("only %d calls", tried)
				}
				t.Logf("%d calls failed", tried)
			})
		}
	}
}
