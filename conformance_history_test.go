package minikudu_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// fold folds the changes of columns that are in files into the base data.
func (r *rig) fold(columns ...string) {
	r.Helper()
	if err := r.tab.CompactDeltas(ctx, columns...); err != nil {
		r.Fatal(err)
	}
}

// layouts are what happens between commits.
var layouts = []struct {
	name string
	step func(r *rig)
}{
	{"memory", nothing},
	{"each flushed", (*rig).flush},
	{"each flushed and folded", func(r *rig) { r.flush(); r.fold() }},
	{"each compacted", func(r *rig) { r.compact() }},
	{"each followed by something", func(r *rig) {
		steps := []func(){func() {}, r.flush, func() { r.flush(); r.fold() }, func() { r.compact() }, r.restart}
		steps[rand.IntN(len(steps))]()
	}},
}

// eachPast plays commits, with a step of each layout wherever play calls it, and runs check
// after that and after a restart, a flush, a fold and a compaction.
func eachPast(t *testing.T, spec minikudu.TableSpec, play func(r *rig, step func()), check func(r *rig)) {
	t.Helper()
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			r := newRig(t, minikudu.Options{}, spec)
			play(r, func() { l.step(r) })
			check(r)
			for _, then := range []func(){r.restart, r.flush, func() { r.fold() }, func() { r.compact() }, r.restart} {
				then()
				check(r)
			}
		})
	}
}

// asOf fails unless the table held the rows at a time, by every way to read that.
func (r *rig) asOf(at minikudu.Timestamp, want ...[]any) {
	r.Helper()
	what := fmt.Sprint("as of ", at)
	sameList(r, what, r.rows(minikudu.Query{AsOf: at, Order: minikudu.KeyOrder}), want)
	backwards := r.rows(minikudu.Query{AsOf: at, Order: minikudu.KeyReverse})
	slices.Reverse(backwards)
	sameList(r, what+", backwards", backwards, want)
	sameSet(r, what+", in storage order", r.rows(minikudu.Query{AsOf: at}), want)
	n, err := r.tab.Aggregate(ctx, minikudu.Query{AsOf: at}, nil, minikudu.Count())
	if err != nil || n.Column(0).Int64s()[0] != int64(len(want)) {
		r.Fatalf("%s: count %v, %v, want %d", what, n, err, len(want))
	}
	nk := r.tab.Schema().NumKey()
	for _, row := range want {
		got, err := r.tab.GetAsOf(ctx, at, row[:nk]...)
		if err != nil || show(got.Values()) != show(row) {
			r.Fatalf("%s: get of %v: %v, %v, want %v", what, row[:nk], got, err, row)
		}
	}
}

// gone fails unless the key was not there at a time.
func (r *rig) gone(at minikudu.Timestamp, key ...any) {
	r.Helper()
	if row, err := r.tab.GetAsOf(ctx, at, key...); !errors.Is(err, minikudu.ErrNotFound) {
		r.Fatalf("get of %v as of %d: %v, %v", key, at, row, err)
	}
}

// changes returns what a diff delivers: rows, those that are deleted with a minus sign.
func (r *rig) changes(q minikudu.DiffQuery) (out []string) {
	r.Helper()
	for b, err := range r.tab.Diff(ctx, q) {
		if err != nil {
			r.Fatalf("diff %+v: %v", q, err)
		}
		for i := range b.Len() {
			s := fmt.Sprint(b.Row(i))
			if b.Deleted(i) {
				s = "-" + s
			}
			out = append(out, s)
		}
	}
	return out
}

// diff fails unless the changes between two times are the rows, in both orders and with
// and without those deleted.
func (r *rig) diff(from, to minikudu.Timestamp, want ...string) {
	r.Helper()
	what := fmt.Sprintf("diff (%d, %d]", from, to)
	sameTexts(r, what, r.changes(minikudu.DiffQuery{From: from, To: to}), want)
	backwards := r.changes(minikudu.DiffQuery{From: from, To: to, Reverse: true})
	slices.Reverse(backwards)
	sameTexts(r, what+", backwards", backwards, want)
	live := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[0] == '-' })
	sameTexts(r, what+", live rows", r.changes(minikudu.DiffQuery{From: from, To: to, LiveOnly: true}), live)
}

func row(cells ...any) []any {
	for i, c := range cells {
		if n, ok := c.(int); ok {
			cells[i] = int64(n)
		}
	}
	return cells
}

func TestItem31SnapshotsOfTwoLives(t *testing.T) {
	var inserted, deleted, again minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		inserted = r.insert([]any{1, 10}).Timestamp
		step()
		deleted = r.do(minikudu.OpDelete, key(1)).Timestamp
		step()
		again = r.insert([]any{1, 12}).Timestamp
		step()
	}, func(r *rig) {
		r.asOf(inserted - 1)
		r.asOf(inserted, row(1, 10))
		r.asOf(deleted-1, row(1, 10))
		r.asOf(deleted)
		r.gone(deleted, 1)
		r.asOf(again - 1)
		r.asOf(again, row(1, 12))
		r.is(row(1, 12))
	})
}

func TestItem32SnapshotPerCommit(t *testing.T) {
	var inserts, updates [5]minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		for i := range inserts {
			inserts[i] = r.insert([]any{i, 0}).Timestamp
			step()
		}
		for i := range updates {
			updates[i] = r.do(minikudu.OpUpdate, kv(2, i+1)).Timestamp
			step()
		}
	}, func(r *rig) {
		for i, at := range inserts {
			var want [][]any
			for k := range i + 1 {
				want = append(want, row(k, 0))
			}
			r.asOf(at, want...)
		}
		for i, at := range updates {
			r.asOf(at, row(0, 0), row(1, 0), row(2, i+1), row(3, 0), row(4, 0))
		}
	})
}

func TestItem34DiffsOfOneKey(t *testing.T) {
	var s [5]minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		s[1] = r.insert([]any{7, 0}).Timestamp
		s[0] = s[1] - 1
		step()
		s[2] = r.do(minikudu.OpUpdate, kv(7, 1)).Timestamp
		step()
		s[3] = r.do(minikudu.OpDelete, key(7)).Timestamp
		step()
		s[4] = r.insert([]any{7, 2}).Timestamp
		step()
	}, func(r *rig) {
		for _, c := range []struct {
			from, to int
			want     string
		}{{0, 1, "[7 0]"}, {1, 2, "[7 1]"}, {2, 3, "-[7 1]"}, {3, 4, "[7 2]"}, {0, 2, "[7 1]"}, {1, 3, "-[7 1]"}, {2, 4, "[7 2]"},
			{0, 3, ""}, {1, 4, "[7 2]"}, {0, 4, "[7 2]"}, {0, 0, ""}, {1, 1, ""}, {2, 2, ""}, {3, 3, ""}, {4, 4, ""}} {
			var want []string
			if c.want != "" {
				want = append(want, c.want)
			}
			r.diff(s[c.from], s[c.to], want...)
		}
	})
}

func TestItem35ThreeOfSevenDeleted(t *testing.T) {
	var before, after minikudu.Timestamp
	var want []string
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		for k := range 7 {
			before = r.insert([]any{k, k}).Timestamp
		}
		step()
		want = nil
		for k := range 7 {
			if k == 2 || k == 3 || k == 6 {
				after = r.do(minikudu.OpDelete, key(k)).Timestamp
				want = append(want, fmt.Sprintf("-[%d %d]", k, k))
			} else {
				after = r.do(minikudu.OpUpdate, kv(k, 10*k)).Timestamp
				want = append(want, fmt.Sprintf("[%d %d]", k, 10*k))
			}
			step()
		}
		if r.tab.Rows() != 4 {
			r.Fatalf("%d rows", r.tab.Rows())
		}
		r.insert([]any{9, 9})
	}, func(r *rig) {
		r.asOf(after, row(0, 0), row(1, 10), row(4, 40), row(5, 50))
		r.diff(before, after, want...)
		r.diff(before, 0, append(slices.Clone(want), "[9 9]")...)
		if r.tab.Rows() != 5 {
			r.Fatalf("%d rows", r.tab.Rows())
		}
	})
}

// Of rows that lived within a batch only no snapshot and no diff knows.
func TestItem36NothingOfALifeWithinABatch(t *testing.T) {
	var s [4]minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		s[0] = r.insert([]any{0, 0}).Timestamp
		step()
		for i := 1; i < 3; i++ {
			var b minikudu.WriteBatch
			for range i {
				b.Insert(r.tab, 1, i)
				b.Delete(r.tab, 1)
			}
			b.Upsert(r.tab, 0, i)
			s[i] = r.commit(&b).Timestamp
			step()
		}
		s[3] = r.do(minikudu.OpUpdate, kv(0, 3)).Timestamp
	}, func(r *rig) {
		for i, at := range s {
			r.asOf(at, row(0, i))
			for k, to := range s[i:] {
				if k == 0 {
					r.diff(at, to)
				} else {
					r.diff(at, to, fmt.Sprintf("[0 %d]", i+k))
				}
			}
		}
		r.diff(0, 0, "[0 3]")
		if r.flush(); r.tab.Rows() != 1 {
			r.Fatalf("%d rows", r.tab.Rows())
		}
	})
}

// numbersSpec has a key and three nullable numbers.
func numbersSpec() minikudu.TableSpec {
	return table([]string{"key"}, col("key", schema.Int32), null(col("a", schema.Int32)), null(col("b", schema.Int32)), null(col("c", schema.Int32)))
}

func TestItem37ProjectionsOfThePast(t *testing.T) {
	var s []minikudu.Timestamp
	eachPast(t, numbersSpec(), func(r *rig, step func()) {
		s = []minikudu.Timestamp{r.insert([]any{1, 1, 100, 1000}).Timestamp}
		step()
		for _, cells := range []map[string]any{{"a": 2}, {"b": 200}, {"c": nil}} {
			cells["key"] = 1
			s = append(s, r.do(minikudu.OpUpdate, cells).Timestamp)
			step()
		}
		s = append(s, r.do(minikudu.OpDelete, key(1)).Timestamp)
		step()
		s = append(s, r.insert([]any{1, 5, nil, 7}).Timestamp)
		step()
	}, func(r *rig) {
		states := [][]any{row(1, 1, 100, 1000), row(1, 2, 100, 1000), row(1, 2, 200, 1000), row(1, 2, 200, nil), nil, row(1, 5, nil, 7)}
		for _, columns := range [][]string{{"key", "a"}, {"key", "b"}, {"c"}, {"key"}, {"c", "a"}, {}} {
			pick := func(cells []any) []any {
				out := []any{}
				for _, c := range columns {
					out = append(out, cells[slices.Index([]string{"key", "a", "b", "c"}, c)])
				}
				return out
			}
			for i, at := range s {
				var want [][]any
				if states[i] != nil {
					want = append(want, pick(states[i]))
				}
				sameList(r, fmt.Sprint(columns, " as of commit ", i), r.rows(minikudu.Query{AsOf: at, Columns: columns}), want)
				if i == 0 {
					continue
				}
				// Whatever column was changed, the row is there.
				diff := ""
				if states[i] != nil {
					diff = fmt.Sprint(pick(states[i]))
				} else {
					diff = "-" + fmt.Sprint(pick(states[i-1]))
				}
				sameTexts(r, fmt.Sprint(columns, " changed by commit ", i), r.changes(minikudu.DiffQuery{From: s[i-1], To: at, Columns: columns}), []string{diff})
			}
		}
	})
}

func TestItem43SnapshotsOfADelete(t *testing.T) {
	var before, after minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		before = r.insert([]any{0, 1}, []any{1, 2}).Timestamp
		step()
		after = r.do(minikudu.OpDelete, key(0)).Timestamp
		step()
	}, func(r *rig) {
		r.asOf(before, row(0, 1), row(1, 2))
		r.asOf(after, row(1, 2))
		r.gone(after, 0)
		r.diff(before, after, "-[0 1]")
	})
}

func TestItem44SnapshotsOfUpdates(t *testing.T) {
	var s [5]minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		s[0] = r.insert([]any{1, 1}).Timestamp
		step()
		for i := 1; i < 5; i++ {
			s[i] = r.do(minikudu.OpUpdate, kv(1, i+1)).Timestamp
			step()
		}
	}, func(r *rig) {
		for i, at := range s {
			r.asOf(at, row(1, i+1))
			r.diff(at-1, at, fmt.Sprintf("[1 %d]", i+1))
		}
	})
}

// A scan does not read files of changes that its time needs nothing of: REDO of later
// changes, UNDO of earlier ones. Rowsets that were inserted later are skipped.
func TestItem47FilesSkippedByTime(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs}, kvSpec())
	inserted := r.insert([]any{1, 1}, []any{2, 2}).Timestamp
	r.flush()
	updated := r.do(minikudu.OpUpdate, kv(1, 5)).Timestamp
	r.flush()
	reads := func(at minikudu.Timestamp) int64 {
		r.restart() // nothing is cached
		fs.ResetCounts()
		r.rows(minikudu.Query{AsOf: at})
		return fs.Count(errorfs.OpRead, vfs.KindDelta).Calls
	}
	if n := reads(inserted); n != 0 {
		t.Errorf("%d reads of changes that are later", n)
	}
	if n := reads(updated); n == 0 {
		t.Error("the change was not read")
	}
	r.fold()
	if n := reads(updated); n != 0 {
		t.Errorf("%d reads of what was before", n)
	}
	if n := reads(0); n != 0 {
		t.Errorf("%d reads of what was before", n)
	}
	if n := reads(updated - 1); n == 0 {
		t.Error("what was before the change was not read")
	}
	r.asOf(updated-1, row(1, 1), row(2, 2))
	r.insert([]any{3, 3})
	r.flush()
	var e minikudu.Explain
	r.rows(minikudu.Query{AsOf: updated, Explain: &e})
	if e.RowSetsByTime != 1 {
		t.Errorf("%d rowsets skipped by time", e.RowSetsByTime)
	}
}

func TestItem51FoldsInThreeRounds(t *testing.T) {
	spec := table([]string{"key"}, col("key", schema.Int32))
	for c := range 4 {
		spec.Columns = append(spec.Columns, col(fmt.Sprint("c", c+1), schema.Int32))
	}
	r := newRig(t, minikudu.Options{}, spec)
	type moment struct {
		at   minikudu.Timestamp
		rows [][]any
	}
	var past []moment
	now := make([][]any, 100)
	note := func(at minikudu.Timestamp) {
		m := moment{at, make([][]any, len(now))}
		for i := range now {
			m.rows[i] = slices.Clone(now[i])
		}
		past = append(past, m)
	}
	check := func() {
		t.Helper()
		r.is(now...)
		for _, m := range past {
			r.asOf(m.at, m.rows...)
		}
	}
	var b minikudu.WriteBatch
	for k := range now {
		now[k] = row(k, k, k, k, k)
		b.Insert(r.tab, now[k]...)
	}
	note(r.commit(&b).Timestamp)
	r.flush()
	for round, columns := range [][]string{{"c1", "c3", "c4"}, {"c1", "c3"}, {"c1"}} {
		for odd := 1; odd >= 0; odd-- {
			b.Reset()
			for k := odd; k < 100; k += 2 {
				change := key(k)
				for c := 1; c <= 4; c++ {
					if v := 1000*(round+1) + 10*k + c; (k+c)%3 > 0 {
						change[fmt.Sprint("c", c)], now[k][c] = v, int64(v)
					}
				}
				b.Add(r.tab, minikudu.OpUpdate, change)
			}
			note(r.commit(&b).Timestamp)
			r.flush()
			check()
		}
		r.fold(columns...)
		check()
		r.restart()
		check()
	}
	r.fold()
	check()
	r.compact()
	check()
}

// Deletes are carried through folds; snapshots before them show all rows with updates.
func TestItem52PastOfDeletedRows(t *testing.T) {
	var updated, deleted minikudu.Timestamp
	var want [][]any
	eachPast(t, numbersSpec(), func(r *rig, step func()) {
		var b minikudu.WriteBatch
		want = nil
		for k := range 50 {
			b.Insert(r.tab, k, 1, 1, 1)
			want = append(want, row(k, 2, 3, 1))
		}
		r.commit(&b)
		step()
		if _, err := r.db.UpdateWhere(ctx, r.tab, nil, map[string]any{"a": 2, "b": 3}, nil); err != nil {
			r.Fatal(err)
		}
		updated = r.db.Now()
		step()
		if _, err := r.db.DeleteWhere(ctx, r.tab, nil, nil); err != nil {
			r.Fatal(err)
		}
		deleted = r.db.Now()
		step()
		r.fold("a")
	}, func(r *rig) {
		r.is()
		r.asOf(deleted)
		r.asOf(updated, want...)
		if n := len(r.changes(minikudu.DiffQuery{From: updated, To: deleted})); n != 50 {
			r.Fatalf("%d rows deleted", n)
		}
	})
}

// Damage that a fold meets is an error, and nothing has changed.
func TestItem53DamageWhileFolding(t *testing.T) {
	for _, kind := range []string{"changes", "base data"} {
		t.Run(kind, func(t *testing.T) {
			mem := vfs.NewMem()
			r := newRig(t, minikudu.Options{FS: mem}, kvSpec())
			for k := range 100 {
				r.insert([]any{k, k})
			}
			inserted := r.db.Now()
			r.flush()
			before := r.files()
			r.updateAll(100, 7)
			r.flush()
			name := ""
			for _, f := range r.files() {
				if slices.Contains(before, f) == (kind == "base data") && strings.HasPrefix(f, "data/") {
					name = mem.Join("db", f)
				}
			}
			r.restart()
			healthy := readAll(t, mem, name)
			damaged := slices.Clone(healthy)
			for i := range len(damaged) * 3 / 4 {
				damaged[i] ^= 0x55
			}
			overwrite(t, mem, name, 0, damaged)
			files := r.rowsetFiles()
			if err := r.tab.CompactDeltas(ctx); !errors.Is(err, minikudu.ErrCorruption) || !strings.Contains(err.Error(), "data") {
				t.Fatalf("a fold of damaged %s: %v", kind, err)
			}
			if n := r.rowsetFiles(); n != files {
				t.Errorf("%d files, were %d", n, files)
			}
			if kind == "changes" { // of no use for this
				if n := len(r.rows(minikudu.Query{AsOf: inserted})); n != 100 {
					t.Errorf("%d rows as of the inserts", n)
				}
			}
			overwrite(t, mem, name, 0, healthy)
			r.restart()
			for range 2 {
				if n, err := r.tab.Count(ctx, predicate.Eq("val", 7)); err != nil || n != 100 {
					t.Fatalf("%d rows, %v", n, err)
				}
				if n := len(r.rows(minikudu.Query{AsOf: inserted, Where: predicate.Ne("val", 7)})); n != 99 {
					t.Fatalf("%d other rows as of the inserts", n)
				}
				r.fold()
			}
		})
	}
}

func TestItem54LivesInLayers(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	set := func(op minikudu.Op, val any) (at minikudu.Timestamp) {
		var b minikudu.WriteBatch
		for k := range 10 {
			cells := key(k)
			if val != nil {
				cells["val"] = val
			}
			b.Add(r.tab, op, cells)
		}
		return r.commit(&b).Timestamp
	}
	all := func(val int) (out [][]any) {
		for k := range 10 {
			out = append(out, row(k, val))
		}
		return out
	}
	first := set(minikudu.OpInsert, 1)
	died := set(minikudu.OpDelete, nil)
	second := set(minikudu.OpInsert, 2)
	r.flush()
	updated := set(minikudu.OpUpdate, 22)
	again := set(minikudu.OpDelete, nil)
	third := set(minikudu.OpInsert, 3)
	r.flush()
	r.fold()
	check := func() {
		t.Helper()
		r.is(all(3)...)
		r.asOf(first, all(1)...)
		r.asOf(died)
		r.asOf(second, all(2)...)
		r.asOf(updated, all(22)...)
		r.asOf(again)
		r.asOf(third, all(3)...)
	}
	check()
	if s, err := r.tab.Stats(ctx); err != nil || s.RowSets != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	r.restart()
	check()
	r.compact()
	check()
	if s, err := r.tab.Stats(ctx); err != nil || s.RowSets != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// clocked is a rig whose clock is set by hand.
type clocked struct {
	*rig
	*clock
}

func newClocked(t testing.TB, o minikudu.Options, spec minikudu.TableSpec) *clocked {
	c := newClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o.Now = c.now
	return &clocked{newRig(t, o, spec), c}
}

// expired fails unless a time is too old to be read.
func (r *rig) expired(at minikudu.Timestamp) {
	r.Helper()
	for _, err := range r.tab.Scan(ctx, minikudu.Query{AsOf: at}) {
		if errors.Is(err, minikudu.ErrHistoryExpired) {
			break
		}
		r.Fatalf("a scan as of %d: %v", at, err)
	}
	_, get := r.tab.GetAsOf(ctx, at, 1)
	_, snapshot := r.db.SnapshotAt(at)
	_, pin := r.db.Pin(ctx, "expired", at)
	var diff error
	for _, err := range r.tab.Diff(ctx, minikudu.DiffQuery{From: at}) {
		diff = err
	}
	for what, err := range map[string]error{"get": get, "snapshot": snapshot, "pin": pin, "diff": diff} {
		if !errors.Is(err, minikudu.ErrHistoryExpired) {
			r.Fatalf("a %s as of %d: %v", what, at, err)
		}
	}
}

// deltaFiles returns the number of files of changes and of history.
func (r *rig) deltaFiles() (n int) {
	for _, f := range r.files() {
		if strings.HasSuffix(f, ".delta") {
			n++
		}
	}
	return n
}

// What is too old when changes are folded leaves no history.
func TestItem56FoldOfExpiredChanges(t *testing.T) {
	for _, columns := range [][]string{{"a"}, nil} {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprint(columns, old), func(t *testing.T) {
				c := newClocked(t, minikudu.Options{}, numbersSpec())
				inserted := c.insert([]any{1, 1, 1, 1}).Timestamp
				c.flush()
				c.do(minikudu.OpUpdate, map[string]any{"key": 1, "a": 2, "b": 2})
				c.flush()
				if old {
					c.pass(time.Hour)
				}
				c.fold(columns...)
				want := 0
				if columns != nil {
					want++ // the changes of b
				}
				if !old {
					want++ // the history of a
				}
				if n := c.deltaFiles(); n != want {
					t.Errorf("%d files of changes, want %d", n, want)
				}
				for range 2 {
					c.is(row(1, 2, 2, 1))
					if old {
						c.expired(inserted)
					} else {
						c.asOf(inserted, row(1, 1, 1, 1))
					}
					c.restart()
				}
			})
		}
	}
}

// A rowset whose rows are all deleted goes with the first compaction for which that is
// too long ago, and not before; one with a live row stays.
func TestItem58RowsetsOfDeletedRows(t *testing.T) {
	for _, where := range []string{"memory", "files", "folded files"} {
		t.Run(where, func(t *testing.T) {
			c := newClocked(t, minikudu.Options{}, kvSpec())
			inserted := c.insert([]any{1, 1}, []any{2, 2}).Timestamp
			c.flush()
			c.do(minikudu.OpUpdate, kv(2, 3))
			c.do(minikudu.OpDelete, key(1))
			last := c.do(minikudu.OpDelete, key(2)).Timestamp
			if where != "memory" {
				c.flush()
			}
			if where == "folded files" {
				c.fold()
			}
			for range 2 { // not yet
				if res := c.compact(); res.RowsDropped != 0 || c.rowsetFiles() == 0 {
					t.Fatalf("%+v, %d files", res, c.rowsetFiles())
				}
				c.is()
				c.asOf(inserted, row(1, 1), row(2, 2))
				c.asOf(last-1, row(2, 3))
				c.pass(minikudu.DefaultHistory / 2)
				c.restart()
			}
			c.pass(minikudu.DefaultHistory / 2)
			c.do(minikudu.OpInsert, kv(9, 9)) // the newest state can always be read
			c.compact()
			c.is(row(9, 9))
			c.expired(inserted)
			if rows := c.tab.Rows(); rows != 1 || c.rowsetFiles() != 1 {
				t.Fatalf("%d rows, %d files", rows, c.rowsetFiles())
			}
			if rep, err := c.db.Verify(ctx); err != nil || rep.Rows != 1 {
				t.Fatalf("%+v, %v", rep, err)
			}
			c.restart()
			c.is(row(9, 9))
		})
	}
}

func TestItem59DiffsOfFourRows(t *testing.T) {
	spec := table([]string{"key"}, col("key", schema.Int32), col("val1", schema.Int32), col("val2", schema.Int32))
	change := func(k int, name string, v int) map[string]any { return map[string]any{"key": k, name: v} }
	dice := testkit.Rand(t)
	for range 30 {
		r := newRig(t, minikudu.Options{}, spec)
		some := func() {
			for range dice.IntN(3) {
				[]func(){r.flush, func() { r.flush(); r.fold() }, func() { r.fold("val1") }, func() { r.compact() }, r.restart}[dice.IntN(5)]()
			}
		}
		var s [6]minikudu.Timestamp
		for i := range 4 {
			s[0] = r.insert([]any{i, 2 * i, 3 * i}).Timestamp
		}
		r.flush()
		for i, c := range []map[string]any{change(1, "val2", 1000), change(1, "val1", 200), change(2, "val1", 300), change(3, "val1", 400)} {
			some()
			s[i+1] = r.do(minikudu.OpUpdate, c).Timestamp
		}
		some()
		s[5] = r.do(minikudu.OpDelete, key(3)).Timestamp
		for range 4 {
			some()
			r.diff(s[0], s[1], "[1 2 1000]")
			r.diff(s[1], s[2], "[1 200 1000]")
			r.diff(s[2], s[3], "[2 300 6]")
			r.diff(s[3], s[4], "[3 400 9]")
			r.diff(s[4], s[5], "-[3 400 9]")
			r.diff(s[0], s[5], "[1 200 1000]", "[2 300 6]", "-[3 400 9]")
			r.diff(s[0]-1, s[0], "[3 6 9]")
			for _, at := range s {
				r.diff(at, at)
			}
		}
	}
}

// A time stands for the commits up to it. What can be read begins at the mark exactly and
// ends with the present.
func TestItem70TimesThatCanBeRead(t *testing.T) {
	c := newClocked(t, minikudu.Options{}, kvSpec())
	first := c.insert([]any{1, 1}).Timestamp
	c.asOf(first - 1)
	c.asOf(first, row(1, 1))
	if first.Time() != c.now() {
		t.Fatalf("commit at %v, the clock shows %v", first.Time(), c.now())
	}
	c.pass(time.Minute)
	second := c.do(minikudu.OpUpdate, kv(1, 2)).Timestamp
	c.pass(minikudu.DefaultHistory - time.Minute) // the mark is at the first commit
	c.asOf(first, row(1, 1))
	c.diff(first, 0, "[1 2]")
	c.expired(first - 1)
	c.asOf(minikudu.TimestampAt(c.now()), row(1, 2))
	for _, ahead := range []time.Duration{time.Microsecond, time.Hour, 100 * 365 * 24 * time.Hour} {
		at := minikudu.TimestampAt(c.now().Add(ahead))
		_, get := c.tab.GetAsOf(ctx, at, 1)
		_, snapshot := c.db.SnapshotAt(at)
		_, pin := c.db.Pin(ctx, "future", at)
		for what, err := range map[string]error{"get": get, "snapshot": snapshot, "pin": pin} {
			if !errors.Is(err, minikudu.ErrInvalidArgument) {
				t.Errorf("a %s %v ahead: %v", what, ahead, err)
			}
		}
		for _, err := range c.tab.Diff(ctx, minikudu.DiffQuery{From: first, To: at}) {
			if !errors.Is(err, minikudu.ErrInvalidArgument) {
				t.Errorf("a diff up to %v ahead: %v", ahead, err)
			}
		}
	}
	c.pass(time.Microsecond)
	c.expired(first)
	c.asOf(first+1<<12, row(1, 1)) // the next microsecond
	for range 3 {
		c.pass(time.Hour)
		c.expired(second - 1)
		c.asOf(second, row(1, 2)) // the newest state is never too old
		c.compact()
	}
	c.restart()
	c.is(row(1, 2))
	c.expired(second - 1)
}

// A snapshot gives the same rows at every call of a flush, fold and compaction.
func TestItem72SnapshotAtEveryCall(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	c := newClocked(t, minikudu.Options{FS: fs}, kvSpec())
	for k := range 20 {
		c.insert([]any{k, k})
	}
	c.flush()
	for k := range 10 {
		c.do(minikudu.OpUpdate, kv(k, 100+k))
	}
	c.do(minikudu.OpDelete, key(15))
	want := c.rows(minikudu.Query{Order: minikudu.KeyOrder})
	s, err := c.db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c.pass(time.Hour) // it alone keeps the state
	calls := 0
	look := func() {
		t.Helper()
		for _, o := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
			sameSet(t, fmt.Sprintf("call %d, order %d", calls, o), c.rows(minikudu.Query{AsOf: s.Timestamp(), Order: o}), want)
		}
	}
	steps := []struct {
		name string
		do   func()
	}{
		{"flush of changes", c.flush}, {"fold", func() { c.fold() }}, {"compaction", func() { c.compact() }},
		{"flush of rows", c.flush}, {"compaction of both", func() { c.compact() }},
	}
	for _, step := range steps {
		c.do(minikudu.OpUpdate, kv(3, 1000+calls))
		c.do(minikudu.OpDelete, key(4))
		c.do(minikudu.OpInsert, kv(4, 1000+calls))
		look()
		n := c.atCalls(fs, step.do, func(int) { calls++; look() })
		look()
		if n < 3 {
			t.Errorf("%s: %d calls", step.name, n)
		}
	}
}

func TestItem73DiffAcrossRowsets(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	first := r.insert([]any{1, 1}).Timestamp
	r.flush()
	deleted := r.do(minikudu.OpDelete, key(1)).Timestamp
	r.flush()
	last := r.insert([]any{1, 2}).Timestamp
	r.flush()
	for range 2 {
		r.diff(0, 0, "[1 2]")
		r.diff(first-1, last, "[1 2]")
		r.diff(first, last, "[1 2]")
		r.diff(first, deleted, "-[1 1]")
		r.diff(first-1, deleted)
		r.diff(deleted, last, "[1 2]")
		if s, err := r.tab.Stats(ctx); err != nil || s.RowSets > 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		r.compact()
	}
}

func TestItem74DiffShowsEachKeyOnce(t *testing.T) {
	var from, to minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		from = r.insert([]any{1, 1}).Timestamp
		r.flush()
		r.do(minikudu.OpDelete, key(1))
		step()
		r.insert([]any{3, 3})
		r.flush()
		step()
		r.insert([]any{1, 2})
		step()
		to = r.insert([]any{0, 0}).Timestamp
		step()
	}, func(r *rig) { r.diff(from, to, "[0 0]", "[1 2]", "[3 3]") })
}

// Many updates of a row in one batch, while its changes are flushed, are one change.
func TestItem75ManyUpdatesInABatchBesideAFlush(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs}, kvSpec())
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	from := r.insert([]any{1, 0}).Timestamp
	r.flush()
	r.do(minikudu.OpUpdate, kv(1, -1))
	last := 0
	var past []minikudu.Timestamp
	r.atCalls(fs, r.flush, func(int) {
		var b minikudu.WriteBatch
		for i := range n {
			b.Add(r.tab, minikudu.OpUpdate, kv(1, last+i+1))
		}
		last += n
		b.Insert(r.tab, 2, 2) // lives within the interval only
		past = append(past, r.commit(&b).Timestamp)
		r.do(minikudu.OpDelete, key(2))
	})
	if len(past) < 3 {
		t.Fatalf("a flush of %d calls", len(past))
	}
	for _, step := range []func(){func() {}, r.flush, func() { r.fold() }, func() { r.compact() }, r.restart} {
		step()
		r.diff(from, 0, fmt.Sprintf("[1 %d]", last))
		for i, at := range past {
			r.asOf(at, row(1, (i+1)*n), row(2, 2))
		}
	}
}

func TestItem93SnapshotAfterThreeLives(t *testing.T) {
	var at, last minikudu.Timestamp
	eachPast(t, kvSpec(), func(r *rig, step func()) {
		for i := range 3 {
			at = r.insert([]any{1, i}).Timestamp
			step()
			if i < 2 {
				r.do(minikudu.OpDelete, key(1))
				step()
			}
		}
		last = r.do(minikudu.OpUpdate, kv(1, 9)).Timestamp
	}, func(r *rig) {
		r.asOf(at, row(1, 2))
		r.asOf(last, row(1, 9))
	})
}

// Three rowsets, each with a life of one key, become one row that tells all of them apart.
func TestItem103MergedLives(t *testing.T) {
	r := newRig(t, minikudu.Options{}, kvSpec())
	var s []minikudu.Timestamp
	do := func(op minikudu.Op, cells map[string]any) { s = append(s, r.do(op, cells).Timestamp) }
	do(minikudu.OpInsert, kv(1, 0))
	r.flush()
	do(minikudu.OpDelete, key(1))
	do(minikudu.OpInsert, kv(1, 0))
	r.flush()
	do(minikudu.OpUpdate, kv(1, 1))
	do(minikudu.OpDelete, key(1))
	do(minikudu.OpInsert, kv(1, 0))
	r.flush()
	do(minikudu.OpUpdate, kv(1, 2))
	states := []any{int64(0), nil, int64(0), int64(1), nil, int64(0), int64(2)}
	check := func() {
		t.Helper()
		for i, from := range s {
			if states[i] == nil {
				r.asOf(from)
			} else {
				r.asOf(from, row(1, states[i]))
			}
			for k := i + 1; k < len(s); k++ {
				var want []string
				switch {
				case states[k] != nil:
					want = []string{fmt.Sprintf("[1 %d]", states[k])}
				case states[i] != nil: // as it was before it was first deleted
					d := i + slices.Index(states[i:], nil)
					want = []string{fmt.Sprintf("-[1 %d]", states[d-1])}
				}
				r.diff(from, s[k], want...)
			}
		}
		r.diff(0, s[4])
		r.diff(s[0]-1, s[6], "[1 2]")
	}
	check()
	r.flush()
	check()
	r.compact()
	if st, err := r.tab.Stats(ctx); err != nil || st.RowSets != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	check()
	r.restart()
	check()
}

// Of ghosts that are too old a merge keeps nothing, of a live row the recent updates.
func TestItem103ExpiredGhosts(t *testing.T) {
	c := newClocked(t, minikudu.Options{}, kvSpec())
	for i := range 3 {
		c.insert([]any{1, i})
		c.flush()
		c.do(minikudu.OpUpdate, kv(1, 10+i))
		c.do(minikudu.OpDelete, key(1))
	}
	c.insert([]any{1, 2})
	c.pass(time.Hour)
	twenty := c.do(minikudu.OpUpdate, kv(1, 20)).Timestamp
	last := c.do(minikudu.OpUpdate, kv(1, 21)).Timestamp
	for range 2 {
		c.compact()
		c.is(row(1, 21))
		c.asOf(twenty-1, row(1, 2))
		c.asOf(twenty, row(1, 20))
		c.asOf(last, row(1, 21))
		c.diff(twenty-1, last, "[1 21]")
		c.diff(twenty, last, "[1 21]")
		c.restart()
	}
	c.pass(time.Hour)
	c.compact()
	c.expired(last - 1)
	c.is(row(1, 21))
	if n := c.deltaFiles(); n != 0 {
		t.Errorf("%d files of history", n)
	}
}

// A recent delete of an old row keeps the row; an old delete drops it; history that is
// recent is kept whole.
func TestItem104ExpiryInMerges(t *testing.T) {
	c := newClocked(t, minikudu.Options{}, kvSpec())
	for k := range 6 {
		c.insert([]any{k, k})
	}
	c.flush()
	c.do(minikudu.OpDelete, key(0))
	c.do(minikudu.OpUpdate, kv(1, 10))
	c.do(minikudu.OpInsert, kv(7, 7))
	c.do(minikudu.OpDelete, key(7))
	c.flush()
	c.pass(time.Hour)
	deleted := c.do(minikudu.OpDelete, key(2)).Timestamp
	updated := c.do(minikudu.OpUpdate, kv(3, 30)).Timestamp
	if res := c.compact(); res.RowsDropped != 2 { // keys 0 and 7
		t.Fatalf("%+v", res)
	}
	check := func() {
		t.Helper()
		c.is(row(1, 10), row(3, 30), row(4, 4), row(5, 5))
		c.asOf(deleted-1, row(1, 10), row(2, 2), row(3, 3), row(4, 4), row(5, 5))
		c.asOf(deleted, row(1, 10), row(3, 3), row(4, 4), row(5, 5))
		c.asOf(updated, row(1, 10), row(3, 30), row(4, 4), row(5, 5))
		c.diff(deleted-1, updated, "-[2 2]", "[3 30]")
	}
	check()
	for _, step := range []func(){c.flush, func() { c.fold() }, func() { c.compact() }, c.restart} {
		step()
		check()
	}
	for _, k := range []int{1, 3, 4, 5} {
		c.do(minikudu.OpDelete, key(k))
	}
	c.pass(time.Hour)
	c.compact()
	c.is()
	if n := c.rowsetFiles(); n != 0 {
		t.Errorf("%d files", n)
	}
	c.insert([]any{1, 1})
	c.do(minikudu.OpDelete, key(1))
	c.pass(time.Hour)
	c.flush()
	if n := c.rowsetFiles(); n != 0 {
		t.Errorf("%d files of a life that ended long ago", n)
	}
}

// Updates while a merge drops expired rows are moved to the rows that they were made to.
func TestItem105CarryOverPastDroppedRows(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	c := newClocked(t, minikudu.Options{FS: fs}, kvSpec())
	for k := range 10 {
		c.insert([]any{k, k})
	}
	c.flush()
	for k := 0; k < 10; k += 2 {
		c.do(minikudu.OpDelete, key(k))
	}
	c.flush()
	c.pass(time.Hour)
	before := c.do(minikudu.OpUpdate, kv(5, 50)).Timestamp
	var during minikudu.Timestamp
	var res *minikudu.CompactResult
	c.atCalls(fs, func() { res = c.compact() }, func(call int) {
		if call == 2 { // the output is begun
			for _, k := range []int{3, 7, 9} {
				during = c.do(minikudu.OpUpdate, kv(k, 100+k)).Timestamp
			}
		}
	})
	if during == 0 || res.RowsDropped != 5 {
		t.Fatalf("%+v", res)
	}
	for _, step := range []func(){func() {}, c.flush, c.restart, func() { c.compact() }} {
		step()
		c.is(row(1, 1), row(3, 103), row(5, 50), row(7, 107), row(9, 109))
		c.asOf(before, row(1, 1), row(3, 3), row(5, 50), row(7, 7), row(9, 9))
		c.diff(before, during, "[3 103]", "[7 107]", "[9 109]")
	}
}

// failRead fails reads of files of rows and changes.
var failRead = errorfs.Fail(syscall.EIO, 1, 0, errorfs.And(errorfs.Ops(errorfs.OpRead), errorfs.Kinds(vfs.KindRowSet, vfs.KindDelta)))

// A merge that cannot read its inputs leaves them as they are.
func TestItem106FailedMergeLeavesItsInputs(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem())
	r := newRig(t, minikudu.Options{FS: fs}, kvSpec())
	first := r.insert([]any{1, 1}).Timestamp
	r.flush()
	r.do(minikudu.OpDelete, key(1))
	r.insert([]any{1, 2})
	r.flush()
	r.restart()
	files := r.dataFiles()
	fs.SetHook(failRead)
	if _, err := r.tab.Compact(ctx); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	fs.SetHook(nil)
	if got := r.dataFiles(); !slices.Equal(got, files) {
		t.Errorf("files %v, were %v", got, files)
	}
	r.is(row(1, 2))
	r.asOf(first, row(1, 1))
	r.compact()
	r.is(row(1, 2))
	r.asOf(first, row(1, 1))
}

// updateAll sets the keys [0, n) in one batch.
func (r *rig) updateAll(n, val int) {
	r.Helper()
	var b minikudu.WriteBatch
	for k := range n {
		b.Add(r.tab, minikudu.OpUpdate, kv(k, val))
	}
	r.commit(&b)
}
