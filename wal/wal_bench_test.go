package wal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

func benchmarkCommit(b *testing.B, fs vfs.FS, dir string, size int, mode Mode) {
	l, err := Open(context.Background(), fs, dir, Options{Store: store, Interval: 50 * time.Millisecond})
	must(b, err)
	_, err = l.Replay(bg, nil)
	must(b, err)
	must(b, l.Start(bg))
	r := Record{Type: TypeBatch, Payload: []byte(text(1, size))}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		r.Timestamp++
		pos, err := l.Append(&r)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Wait(bg, pos, mode); err != nil {
			b.Fatal(err)
		}
		if r.Timestamp%10000 == 0 {
			trimAll(b, l)
		}
	}
	b.StopTimer()
	stop(b, l)
}

// trimAll keeps the disk from filling up.
func trimAll(b *testing.B, l *Log) {
	must(b, l.SyncThrough(bg, mvcc.Max))
	_, err := l.TrimBefore(l.KeepFrom(mvcc.Max))
	must(b, err)
}

func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		for mode, name := range []string{"sync", "interval", "nosync"} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				benchmarkCommit(b, vfs.OS, b.TempDir()+"/wal", size, Mode(mode))
			})
		}
	}
}

// Append alone: frames, checksum and copy, written to nowhere.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := start(b, nowhere{vfs.NewMem()}, Options{Store: store})
			r := Record{Type: TypeBatch, Payload: []byte(text(1, size))}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.Timestamp++
				if _, err := l.Append(&r); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			_, _ = l.Close()
		})
	}
}

// nowhere is a file system whose files forget what is written.
type nowhere struct{ vfs.FS }

type nowhereFile struct{ vfs.File }

func (n nowhere) Create(name string, k vfs.Kind) (vfs.File, error) {
	f, err := n.FS.Create(name, k)
	return nowhereFile{f}, err
}

func (nowhereFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (nowhereFile) Preallocate(int64, int64) error         { return nil }

func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			mem := vfs.NewMem()
			l := start(b, mem, Options{Store: store})
			const total = 32 << 20
			for i := range total / size {
				_, err := l.Append(&Record{Type: TypeBatch, Timestamp: mvcc.Timestamp(i), Payload: make([]byte, size)})
				must(b, err)
			}
			stop(b, l)
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				l, err := Open(bg, mem, "wal", Options{Store: store, ReadOnly: true})
				must(b, err)
				_, err = l.Replay(bg, func(*Record) error { return nil })
				must(b, err)
			}
		})
	}
}

func BenchmarkCommitParallel(b *testing.B) {
	l, err := Open(bg, vfs.OS, b.TempDir()+"/wal", Options{Store: store})
	must(b, err)
	_, err = l.Replay(bg, nil)
	must(b, err)
	must(b, l.Start(bg))
	r := Record{Type: TypeBatch, Timestamp: 1, Payload: make([]byte, 100)}
	b.SetParallelism(16)
	b.SetBytes(100)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			pos, err := l.Append(&r)
			if err == nil {
				err = l.Wait(bg, pos, Sync)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	m := l.Metrics()
	b.ReportMetric(float64(m.Records)/float64(max(m.Syncs, 1)), "records/sync")
	stop(b, l)
}
