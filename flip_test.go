package minikudu_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/vfs"
)

// smallStore is a closed store of one rowset file, one log and one manifest: table a
// is flushed, later rows of a and all of b are in the log.
func smallStore(t testing.TB) *vfs.Mem {
	t.Helper()
	mem, j := vfs.NewMem(), newJournal()
	o := tiny(mem)
	o.FlushBytes, o.LogBytes = 1<<20, 1<<20
	db := mustOpen(t, "store", o)
	fatal(t, j.create(db, "a"))
	fatal(t, j.create(db, "b"))
	fatal(t, j.commit(db, 0, map[string]int{"a": 6}))
	tab, err := db.Table("a")
	fatal(t, err)
	fatal(t, tab.Flush(ctx))
	fatal(t, j.commit(db, 1, map[string]int{"a": 1, "b": 1}))
	fatal(t, j.commit(db, 2, map[string]int{"b": 1}))
	mustClose(t, db)
	return mem
}

// storeFiles returns the paths of all files of a store, by kind.
func storeFiles(t testing.TB, f vfs.FS) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, dir := range []string{"store", "store/data", "store/wal"} {
		names, err := f.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		fatal(t, err)
		for _, name := range names {
			path := f.Join(dir, name)
			switch {
			case strings.HasPrefix(name, "MANIFEST-"):
				out["manifest"] = append(out["manifest"], path)
			case strings.HasSuffix(name, ".log"):
				out["log"] = append(out["log"], path)
			case dir == "store/data":
				out["rowset"] = append(out["rowset"], path)
			}
		}
	}
	return out
}

func readAll(t testing.TB, f vfs.FS, path string) []byte {
	t.Helper()
	file, err := f.Open(path, vfs.KindOther)
	fatal(t, err)
	defer file.Close()
	size, err := file.Size()
	fatal(t, err)
	b := make([]byte, size)
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return b
}

// overwrite writes p into an existing file.
func overwrite(t testing.TB, f vfs.FS, path string, off int64, p []byte) {
	t.Helper()
	file, err := f.OpenWrite(path, vfs.KindOther)
	fatal(t, err)
	_, err = file.WriteAt(p, off)
	fatal(t, errors.Join(err, file.Sync(), file.Close()))
}

// answers opens the store and asks everything: the rows of every table by scan, in key
// order and by key, and whether it verifies.
func answers(f vfs.FS, readOnly bool) (string, error) {
	o := roomy(f) // nothing is flushed, so nothing of the log may go
	o.ReadOnly, o.ErrorIfMissing = readOnly, true
	db, err := minikudu.Open("store", o)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var out strings.Builder
	for _, tab := range db.Tables() {
		fmt.Fprintf(&out, "table %s\n", tab.Name())
		if err := dump(&out, tab); err != nil {
			return "", err
		}
	}
	return out.String(), checkVerify(db)
}

func dump(out io.Writer, tab *minikudu.Table) error {
	n := 0
	for b, err := range tab.Scan(ctx, minikudu.Query{}) {
		if err != nil {
			return err
		}
		n += b.Len()
	}
	for b, err := range tab.Scan(ctx, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			return err
		}
		for i := range b.Len() {
			r, err := tab.Get(ctx, b.Column(0).Int64s()[i])
			if err != nil {
				return err
			}
			fmt.Fprintln(out, b.Column(0).Int64s()[i], b.Column(1).Int64s()[i], b.Column(2).Int32s()[i], b.Column(3).StringAt(i), r.Values())
			n--
		}
	}
	if n != 0 {
		return fmt.Errorf("table %s: %d rows more unordered than in key order", tab.Name(), n)
	}
	return nil
}

// checkDamage requires that err says which file is damaged, and where.
func checkDamage(err error, path string) error {
	var c *vfs.CorruptionError
	switch {
	case errors.Is(err, minikudu.ErrNotSupported) && strings.Contains(err.Error(), path):
		return nil // the flip made it a file of a newer format
	case !errors.As(err, &c):
		return fmt.Errorf("not a CorruptionError: %w", err)
	case c.Path != path || c.Section == "":
		return fmt.Errorf("damage of %s, but path %q, section %q: %w", path, c.Path, c.Section, err)
	}
	return nil
}

// flipper damages one file at a time.
type flipper struct {
	t        *testing.T
	fs       *vfs.Mem
	want     string
	path     string
	bytes    []byte
	harmless map[int]int // harmless patterns by offset
	tried    int
}

// try damages one byte, asks everything, and repairs it.
func (f *flipper) try(off int, pattern byte) {
	f.t.Helper()
	overwrite(f.t, f.fs, f.path, int64(off), []byte{f.bytes[off] ^ pattern})
	got, err := answers(f.fs, true)
	overwrite(f.t, f.fs, f.path, int64(off), f.bytes[off:off+1])
	f.tried++
	switch {
	case err == nil && got != f.want:
		f.t.Fatalf("%s: byte %d xor %#02x changes the answers without an error", f.path, off, pattern)
	case err == nil:
		f.harmless[off]++
	default:
		if err := checkDamage(err, f.path); err != nil {
			f.t.Fatalf("%s: byte %d xor %#02x: %v", f.path, off, pattern, err)
		}
	}
}

// report prints the harmless ranges and returns their number of bytes.
func (f *flipper) report(used int) int {
	n := 0
	for off := 0; off < used; off++ {
		from := off
		for off < used && f.harmless[off] > 0 {
			off++
		}
		if off > from {
			n += off - from
			f.t.Logf("%s: bytes [%d, %d) are harmless", f.path, from, off)
		}
	}
	f.t.Logf("%s: %d flips in %d bytes, %d bytes harmless", f.path, f.tried, used, n)
	return n
}

// Every flipped bit of a small store is found, or changes no answer.
func TestC75FlipEveryBit(t *testing.T) {
	mem := smallStore(t)
	want, err := answers(mem, true)
	fatal(t, err)
	for kind, paths := range storeFiles(t, mem) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			mem := mem.KillClone()
			total, harmless := 0, 0
			for _, path := range paths {
				f := &flipper{t: t, fs: mem, want: want, path: path, bytes: readAll(t, mem, path), harmless: map[int]int{}}
				used := len(bytes.TrimRight(f.bytes, "\x00"))
				patterns := []byte{1, 2, 4, 8, 16, 32, 64, 128}
				if kind == "rowset" && !full() {
					patterns = []byte{1, 0xff}
				}
				step, start := 1, 0
				if testing.Short() {
					step, start = 7, testkit.Rand(t).IntN(7)
				}
				for off := start; off < used; off += step {
					for _, p := range patterns {
						f.try(off, p)
					}
				}
				r := testkit.Rand(t)
				for range min(len(f.bytes)-used, 50) { // zeroes ahead of use
					f.try(used+r.IntN(len(f.bytes)-used), byte(1+r.IntN(255)))
				}
				total, harmless = total+used, harmless+f.report(used)
			}
			if harmless*100 > total {
				t.Errorf("%d of %d bytes are harmless, want under 1 %%", harmless, total)
			}
		})
	}
}
