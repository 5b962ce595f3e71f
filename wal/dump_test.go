package wal

import (
	"strings"
	"testing"

	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/vfs"
)

// TestDump checks that a segment is described frame by frame, and that what follows
// a damaged frame is called unreadable.
func TestDump(t *testing.T) {
	fs := vfs.NewMem()
	l, err := Open(bg, fs, "wal", Options{Store: store})
	must(t, err)
	_, err = l.Replay(bg, func(*Record) error { return nil })
	must(t, err)
	must(t, l.Start(bg))
	for i, payload := range []string{"first", strings.Repeat("second", 100)} {
		pos, err := l.Append(&Record{Type: TypeBatch, Timestamp: mvcc.Timestamp(i + 1), Payload: []byte(payload)})
		must(t, err)
		must(t, l.Wait(bg, pos, Sync))
	}
	_, err = l.Close()
	must(t, err)
	names, err := fs.List("wal")
	must(t, err)
	path := fs.Join("wal", names[0])
	dump := func() (kinds []string, payload string, at int64) {
		end := int64(64)
		must(t, Dump(bg, fs, path, func(f FrameInfo) error {
			if f.Offset != end {
				t.Errorf("%s begins at %d, want %d", f.Kind, f.Offset, end)
			}
			end = f.Offset + f.Length
			if kinds = append(kinds, f.Kind); len(kinds) == 2 {
				payload = string(f.Payload)
			}
			if len(kinds) == 3 {
				at = f.Offset
			}
			return nil
		}))
		return kinds, payload, at
	}
	kinds, payload, second := dump()
	if got := strings.Join(kinds, " "); got != "link record record end" || payload != "first" {
		t.Errorf("dump shows %s, payload %q", got, payload)
	}
	f, err := fs.OpenWrite(path, vfs.KindLog)
	must(t, err)
	_, err = f.WriteAt([]byte{0xff}, second+60)
	must(t, err)
	must(t, f.Close())
	if kinds, _, _ = dump(); strings.Join(kinds, " ") != "link record unreadable" {
		t.Errorf("dump of a damaged segment shows %v", kinds)
	}
}
