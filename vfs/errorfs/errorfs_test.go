package errorfs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minikudu/minikudu/vfs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everything calls every operation once; it returns the first error.
func everything(f *FS) error {
	var errs []error
	file, err := f.Create("a", vfs.KindLog)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte("hello"), 3)
	errs = append(errs, err)
	_, err = file.ReadAt(make([]byte, 4), 0)
	errs = append(errs, err, file.Preallocate(0, 100), file.Truncate(50), file.Sync())
	_, err = file.Size()
	errs = append(errs, err, file.Close())
	for _, open := range []func(string, vfs.Kind) (vfs.File, error){f.Open, f.OpenWrite} {
		if file, err := open("a", vfs.KindLog); err == nil {
			file.Close()
		} else {
			errs = append(errs, err)
		}
	}
	errs = append(errs, f.MkdirAll("d"), f.Link("a", "b"), f.Rename("a", "c"), f.Remove("b"), f.SyncDir("/"))
	_, err = f.List("/")
	errs = append(errs, err)
	_, err = f.Stat("c")
	errs = append(errs, err)
	if l, err := f.Lock("LOCK", false, true); err == nil {
		l.Close()
	} else {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func TestCounts(t *testing.T) {
	f := Wrap(vfs.NewMem())
	must(t, everything(f))
	for op := range numOps {
		want := int64(1)
		if op == OpClose {
			want = 3
		}
		if c := f.Count(op); c.Calls != want || c.Errors != 0 {
			t.Errorf("%s: %+v", op, c)
		}
	}
	if c := f.Count(OpWrite, vfs.KindLog); c.Bytes != 5 {
		t.Errorf("%+v", c)
	}
	if c := f.Count(OpWrite, vfs.KindManifest, vfs.Kind(200)); c.Calls != 0 {
		t.Errorf("%+v", c)
	}
	if c := f.Count(OpRead); c.Bytes != 4 {
		t.Errorf("%+v", c)
	}
	if f.ResetCounts(); f.Count(OpWrite) != (Count{}) {
		t.Error("not reset")
	}
}

func TestEveryCallFails(t *testing.T) {
	clean := Wrap(vfs.NewMem())
	must(t, everything(clean))
	boom := errors.New("boom")
	for n := int64(1); n <= clean.Calls(); n++ {
		mem := vfs.NewMem()
		f := Wrap(mem)
		f.SetHook(Fail(boom, n, n, Any))
		err := everything(f)
		if closes := f.Count(OpClose).Errors; !errors.Is(err, boom) && closes == 0 {
			t.Fatalf("call %d: %v", n, err)
		}
		if mem.OpenFiles() != 0 {
			t.Fatalf("call %d leaves a file open", n)
		}
	}
}

func TestFailRange(t *testing.T) {
	f := Wrap(vfs.NewMem())
	file, err := f.Create("dir.txt", vfs.KindRowSet)
	must(t, err)
	f.SetHook(Fail(syscall.EIO, 2, 3, And(Ops(OpSync), Kinds(vfs.KindRowSet), Base("*.txt"))))
	for i := range 5 {
		err := file.Sync()
		var p *fs.PathError
		if bad := i == 1 || i == 2; bad != errors.Is(err, syscall.EIO) || bad && !errors.As(err, &p) {
			t.Fatalf("sync %d: %v", i, err)
		}
	}
	f.SetHook(Fail(syscall.ENOSPC, 1, 0, Writes))
	for range 3 {
		if _, err := file.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	f.SetHook(nil)
	must(t, file.Sync())
}

func TestShortWrite(t *testing.T) {
	f := Wrap(vfs.NewMem())
	file, err := f.Create("a", vfs.KindLog)
	must(t, err)
	f.SetHook(Short(syscall.ENOSPC, 2, Any))
	_, err = file.WriteAt([]byte("1234"), 0)
	must(t, err)
	if n, err := file.WriteAt([]byte("abcd"), 4); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(n, err)
	}
	if n, _ := file.Size(); n != 6 {
		t.Fatal(n)
	}
}

func TestHookSeesCalls(t *testing.T) {
	f := Wrap(vfs.NewMem())
	var seen []string
	f.SetHook(Each(func(c Call) error { seen = append(seen, fmt.Sprint(c.N, " ", c)); return nil }))
	file, err := f.Create("a", vfs.KindLog)
	must(t, err)
	file.WriteAt([]byte("hello"), 3)
	if want := "[1 create a 2 write a [3, +5)]"; fmt.Sprint(seen) != want {
		t.Fatal(seen)
	}
}

func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Wrap(vfs.NewMem())
		file, err := f.Create("a", vfs.KindLog)
		must(t, err)
		d := Disk{Latency: time.Millisecond, SyncLatency: 4 * time.Millisecond, BytesPerSecond: 1 << 20}
		f.SetHook(Slow(d.Slower(5)))
		start := time.Now()
		var wg sync.WaitGroup
		for range 2 { // they queue for the disk
			wg.Go(func() {
				file.WriteAt(make([]byte, 1<<20), 0)
				file.Sync()
			})
		}
		wg.Wait()
		if took := time.Since(start).Round(time.Millisecond); took != 2*(5*time.Second+25*time.Millisecond) {
			t.Fatal(took)
		}
	})
}
