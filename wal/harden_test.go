package wal

import (
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

// TestR4HardenDuringReplay: records that only the page cache holds survive a power
// cut once Harden was called while they were replayed.
func TestR4HardenDuringReplay(t *testing.T) {
	for name, segment := range map[string]int64{"one segment": 0, "many segments": 1024} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := Options{SegmentBytes: segment}
			l := start(t, mem, o)
			var want []entry
			for i := range 20 {
				want = append(want, entry{mvcc.Timestamp(10 + i), text(10+i, 200)})
				add(t, l, want[i].ts, want[i].payload, NoSync)
			}
			// The process is killed here: nothing is synced, nothing is closed before the end.
			defer l.Close()
			const hardened = 12
			o.Store = store
			again, err := Open(bg, mem, "wal", o)
			must(t, err)
			n := 0
			_, err = again.Replay(bg, func(*Record) error {
				if n++; n == hardened {
					must(t, again.Harden(bg))
					wantPrefix(t, mem.CrashClone(vfs.CrashOptions{}), o, want[:hardened])
				}
				return nil
			})
			must(t, err)
			if err := again.Harden(bg); err == nil {
				t.Fatal("Harden outside a replay must fail")
			}
		})
	}
}

// wantPrefix replays after a power cut and wants at least the given records.
func wantPrefix(t *testing.T, fs vfs.FS, o Options, want []entry) {
	t.Helper()
	_, got, _, err := replay(fs, o)
	must(t, err)
	if len(got) < len(want) {
		t.Fatalf("%d records after the power cut, %d were hardened", len(got), len(want))
	}
	checkEntries(t, got[:len(want)], want)
}
