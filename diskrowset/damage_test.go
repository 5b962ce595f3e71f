package diskrowset

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// small is a rowset of every kind of section.
func small(t tb, n int) *rows {
	s := newSchema(t, 2, col("host", schema.String), col("ts", schema.Int64), nullable("v", schema.Double),
		nullable("tag", schema.String), schema.Column{Name: "flag", Type: schema.Bool})
	var cells [][]schema.Value
	for i := range n {
		row := []schema.Value{str(fmt.Sprintf("host%02d", i%7)), i64(i * 1000), f64(float64(i) / 3), str(fmt.Sprint(i % 5)), schema.BoolValue(i%3 == 0)}
		if i%11 == 0 {
			row[2], row[3] = schema.Null, schema.Null
		}
		cells = append(cells, row)
	}
	return newRows(t, s, cells)
}

// reopened is the rowset read afresh from a changed file.
func (st *store) reopened(r *RowSet, content []byte) *RowSet {
	st.t.Helper()
	name := path.Join(dir, FileName(r.meta.Sections[0].File))
	must(st.t, st.fs.Remove(name))
	f, err := st.fs.Create(name, vfs.KindRowSet)
	must(st.t, err)
	if len(content) > 0 {
		_, err = f.WriteAt(content, 0)
		must(st.t, err)
	}
	must(st.t, f.Close())
	env := st.env
	env.Files, env.Pages = filecache.New(st.fs, 4), cache.New[cache.Page](64<<20)
	s, err := Open(r.meta, env)
	must(st.t, err)
	return s
}

// answers are what a reader of a small rowset must get.
type answers struct{ all, some []string }

func answersOf(src *rows) answers {
	return answers{src.lines(nil), src.lines(func(i int) bool {
		v, tag := src.cols[2].Value(i), src.cols[3].Value(i)
		return !v.IsNull() && v.Float() > 10 && !tag.IsNull() && tag.Str() == "3"
	})}
}

// readAll reads everything a user can: a full scan, a filtered one and every lookup;
// same says that all answers were right.
func (a answers) readAll(t tb, src *rows, r *RowSet) (same bool, err error) {
	all, err := collect(r, query{}.bind(t, src.schema))
	if err != nil {
		return false, err
	}
	some, err := collect(r, query{where: predicate.And(predicate.Gt("v", 10), predicate.Eq("tag", "3"))}.bind(t, src.schema))
	if err != nil {
		return false, err
	}
	same = slices.Equal(all, a.all) && slices.Equal(some, a.some)
	found, err := resolve(r, src.lookupKeys())
	for i, f := range found {
		same = same && f.RowSet != nil && int(f.Row) == i
	}
	return same, err
}

// TestEveryBitFlipped flips each bit of a rowset file. Reading must give an error that
// names the place, or verification must and every answer be right.
func TestEveryBitFlipped(t *testing.T) {
	src := small(t, 140)
	st := newStore(t, src.schema)
	st.damaged = true
	r := st.one(src)
	good := st.read(path.Join(dir, FileName(st.next)))
	if len(good) > 16<<10 {
		t.Fatalf("file of %d bytes", len(good))
	}
	want, harmless := answersOf(src), map[string]int{}
	bits := 8
	if testing.Short() {
		bits = 1
	}
	for at := range good {
		for bit := range bits {
			bad := append([]byte(nil), good...)
			bad[at] ^= 1 << ((bit + at) % 8)
			s := st.reopened(r, bad)
			same, err := want.readAll(t, src, s)
			if err != nil {
				checkDamage(t, err, at, s)
			} else if !same {
				t.Fatalf("bit %d of byte %d changed an answer", (bit+at)%8, at)
			}
			if err == nil || bit == 0 {
				verr := s.Verify(bg)
				switch {
				case verr != nil:
					checkDamage(t, verr, at, s)
				case err != nil:
					t.Fatalf("byte %d: reading fails, verification does not: %v", at, err)
				default:
					harmless[sectionAt(r, at)]++
				}
			}
			s.Close()
		}
	}
	n := 0
	for name, k := range harmless {
		t.Logf("harmless: %d bits in %s", k, name)
		n += k
	}
	if n*100 > len(good)*bits {
		t.Errorf("%d of %d flipped bits unnoticed", n, len(good)*bits)
	}
}

// checkDamage checks that an error names file, section and an offset in the section
// that holds the damaged byte.
func checkDamage(t *testing.T, err error, at int, s *RowSet) {
	t.Helper()
	var c *vfs.CorruptionError
	if !errors.As(err, &c) {
		if errors.Is(err, vfs.ErrNotSupported) {
			return // a feature bit or format number
		}
		t.Fatalf("byte %d: %v", at, err)
	}
	within := int64(at) >= c.Offset && int64(at) < c.Offset+c.Length
	if c.Path == "" || c.Section == "" || !within && sectionAt(s, int(c.Offset)) != sectionAt(s, at) {
		t.Fatalf("damage in %s at byte %d reported as %v", sectionAt(s, at), at, err)
	}
}

func sectionAt(r *RowSet, at int) string {
	end := int64(0)
	for _, s := range r.meta.Sections {
		if int64(at) >= s.Offset && int64(at) < s.Offset+s.Length {
			return fmt.Sprintf("%s %d", sectionName(s.Kind), s.Column)
		}
		end = max(end, s.Offset+s.Length)
	}
	if int64(at) >= end {
		return "directory"
	}
	return "header"
}

func TestC79Truncated(t *testing.T) {
	src := small(t, 300)
	st := newStore(t, src.schema)
	st.damaged = true
	r := st.one(src)
	good := st.read(path.Join(dir, FileName(st.next)))
	want := answersOf(src)
	for n := 0; n < len(good); n += 1 + n%3 {
		s := st.reopened(r, good[:n])
		same, err := want.readAll(t, src, s)
		if err == nil && !same {
			t.Fatalf("%d of %d bytes: another answer", n, len(good))
		}
		if err != nil && !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err := s.Verify(bg); !errors.Is(err, vfs.ErrCorruption) {
			t.Fatalf("%d bytes: verification says %v", n, err)
		}
		s.Close()
	}
}

func TestC79TruncatedUnderScan(t *testing.T) {
	src := kv(t, 100000, col("val", schema.Int64), func(i int) schema.Value { return i64(i * 7919) })
	st := newStore(t, src.schema)
	st.damaged = true
	r := st.one(src)
	it, err := r.Scan(bg, query{}.bind(t, src.schema))
	must(t, err)
	defer it.Close()
	if _, err := it.Next(bg); err != nil {
		t.Fatal(err)
	}
	f, err := st.fs.OpenWrite(path.Join(dir, FileName(st.next)), vfs.KindRowSet)
	must(t, err)
	must(t, f.Truncate(100))
	must(t, f.Close())
	for {
		b, err := it.Next(bg)
		if errors.Is(err, vfs.ErrCorruption) {
			if b, again := it.Next(bg); b != nil || again != err {
				t.Fatalf("after the error: batch %v, error %v", b, again)
			}
			return
		}
		if err != nil || b == nil {
			t.Fatalf("batch %v, error %v", b, err)
		}
	}
}

func TestSwappedFileIsRefused(t *testing.T) {
	src := small(t, 300)
	st := newStore(t, src.schema)
	st.damaged = true
	a := st.one(src)
	st.one(src)
	other := st.read(path.Join(dir, FileName(st.next)))
	want, s := answersOf(src), st.reopened(a, other)
	defer s.Close()
	if _, err := want.readAll(t, src, s); err == nil {
		t.Fatal("a file of another number was read")
	}
}

func TestOpenFile(t *testing.T) {
	src := small(t, 1000)
	st := newStore(t, src.schema)
	st.one(src)
	name := path.Join(dir, "copy")
	must(t, st.fs.Link(path.Join(dir, FileName(st.next)), name))
	s, d, err := OpenFile(bg, st.fs, st.env.Files, st.env.Pages, name)
	must(t, err)
	defer s.Close()
	must(t, s.Verify(bg))
	src.checkAll(t, s)
	if d.Rows != 1000 || d.SchemaVersion != 7 || len(d.Columns) != 5 || d.Header.File != uint64(st.next) {
		t.Errorf("directory %+v", d)
	}
	infos, err := s.Columns(bg)
	must(t, err)
	for _, c := range infos {
		if !c.Stored || c.Bytes == 0 || c.Pages == 0 || c.PlainBytes == 0 {
			t.Errorf("%+v", c)
		}
	}
	if infos[1].PlainBytes != 8000 || infos[1].Encoding != schema.EncodingPaged {
		t.Errorf("%+v", infos[1])
	}
}

func FuzzDirectory(f *testing.F) {
	d := Directory{Rows: 5, MinKey: []byte("a"), MaxKey: []byte("b"), NumKey: 1, Columns: []schema.Column{{Name: "k", Type: schema.Int32}}}
	b := d.appendTo(nil)
	f.Add(b[:len(b)-trailerSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Directory
		if d.decode(b) != nil {
			return
		}
		again := d.appendTo(nil)
		var e Directory
		if err := e.decode(again[:len(again)-trailerSize]); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzFilterDirectory(f *testing.F) {
	f.Add([]byte{1, 4, 1, 'a'}, int64(4))
	f.Fuzz(func(t *testing.T, b []byte, n int64) {
		if n < 0 || n > 1<<40 {
			return
		}
		d, err := decodeFilterDir(b, 0, n)
		if err == nil && (len(d.offsets) != len(d.slots)+1 || d.offsets[len(d.slots)] != n) {
			t.Fatalf("%+v", d)
		}
	})
}
