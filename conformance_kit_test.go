package minikudu_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/testkit"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// rig is a store in memory with a table, for tests that flush it and open it again.
type rig struct {
	testing.TB
	fs   vfs.FS
	opts minikudu.Options
	db   *minikudu.DB
	tab  *minikudu.Table
	name string
}

// newRig makes a store with one table named "t". Nothing is compacted but on request,
// unless the options ask for it, so that the tests know what is in which file.
func newRig(t testing.TB, o minikudu.Options, spec minikudu.TableSpec) *rig {
	t.Helper()
	testkit.CheckLeaks(t)
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.CompactionWorkers == 0 {
		o.CompactionWorkers = -1
	}
	r := &rig{TB: t, fs: o.FS, opts: o, name: "t"}
	r.db = mustOpen(t, "db", &r.opts)
	t.Cleanup(func() { _ = r.db.Close() })
	tab, err := r.db.CreateTable(ctx, r.name, spec)
	if err != nil {
		t.Fatal(err)
	}
	r.tab = tab
	return r
}

// forgetful returns the table without history.
func forgetful(spec minikudu.TableSpec) minikudu.TableSpec {
	spec.History = minikudu.NoHistory
	return spec
}

// restart closes the store and opens it again.
func (r *rig) restart() {
	r.Helper()
	mustClose(r, r.db)
	r.reopen()
}

func (r *rig) reopen() {
	r.Helper()
	r.db = mustOpen(r, "db", &r.opts)
	tab, err := r.db.Table(r.name)
	if err != nil {
		r.Fatal(err)
	}
	r.tab = tab
}

func (r *rig) flush() {
	r.Helper()
	if err := r.tab.Flush(ctx); err != nil {
		r.Fatal(err)
	}
}

// commit commits a batch that must have no bad row.
func (r *rig) commit(b *minikudu.WriteBatch) *minikudu.Result {
	r.Helper()
	res, err := r.db.Commit(ctx, b, nil)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// insert commits the rows in one batch.
func (r *rig) insert(rows ...[]any) *minikudu.Result {
	r.Helper()
	var b minikudu.WriteBatch
	for _, row := range rows {
		b.Insert(r.tab, row...)
	}
	return r.commit(&b)
}

// rows returns what the query delivers as Go values.
func (r *rig) rows(q minikudu.Query) [][]any {
	r.Helper()
	return scanRows(r, r.tab, q)
}

func scanRows(t testing.TB, tab *minikudu.Table, q minikudu.Query) (out [][]any) {
	t.Helper()
	for b, err := range tab.Scan(ctx, q) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() == 0 {
			t.Fatal("an empty batch")
		}
		for i := range b.Len() {
			out = append(out, b.Row(i))
		}
	}
	return out
}

// eachWay runs check over the rows in memory, in one rowset, in two, in one rowset
// and memory, and after a restart of each. The rows are committed in two batches.
func eachWay(t *testing.T, spec minikudu.TableSpec, rows [][]any, check func(t *testing.T, r *rig)) {
	t.Helper()
	eachWayWith(t, minikudu.Options{}, spec, rows, check)
}

func eachWayWith(t *testing.T, o minikudu.Options, spec minikudu.TableSpec, rows [][]any, check func(t *testing.T, r *rig)) {
	t.Helper()
	for _, way := range []string{"memory", "one rowset", "two rowsets", "rowset and memory"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t, o, spec)
			half := len(rows) / 2
			if way != "one rowset" {
				r.insert(rows[:half]...)
			} else {
				half = 0
			}
			if way == "two rowsets" || way == "rowset and memory" {
				r.flush()
			}
			r.insert(rows[half:]...)
			if way == "one rowset" || way == "two rowsets" {
				r.flush()
			}
			check(t, r)
			r.restart()
			check(t, r)
		})
	}
}

// show returns a row as text that tells nil from "" and NaN from 0.
func show(row []any) string { return fmt.Sprintf("%#v", row) }

// watch calls see at each call that writes, one at a time, until stop is called: log files
// are made and others removed in the background too.
func watch(fs *errorfs.FS, see func(errorfs.Call)) (stop func()) {
	var mu sync.Mutex
	over := false
	fs.SetHook(func(c errorfs.Call) error {
		if c.Op.Writes() {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				see(c)
			}
		}
		return nil
	})
	return func() {
		fs.SetHook(nil)
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// sameSet fails unless both have the same rows in whatever order.
func sameSet(t testing.TB, what string, got, want [][]any) {
	t.Helper()
	a, b := texts(got), texts(want)
	slices.Sort(a)
	slices.Sort(b)
	sameTexts(t, what, a, b)
}

// sameList fails unless both have the same rows in the same order.
func sameList(t testing.TB, what string, got, want [][]any) {
	t.Helper()
	sameTexts(t, what, texts(got), texts(want))
}

func texts(rows [][]any) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = show(r)
	}
	return out
}

func sameTexts(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: %d rows, want %d; row %d is %s, want %s", what, len(got), len(want), i, clip(got[i]), clip(want[i]))
		}
	}
	t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// column returns column i of rows.
func column[T any](rows [][]any, i int) []T {
	out := make([]T, len(rows))
	for k, r := range rows {
		out[k] = r[i].(T)
	}
	return out
}

// clock is a clock that is set by hand.
type clock struct{ nanos atomic.Int64 }

func newClock(t time.Time) *clock {
	c := &clock{}
	c.nanos.Store(t.UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }

func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

// files returns the names of everything in the store, by directory.
func (r *rig) files() []string {
	r.Helper()
	var out []string
	for _, dir := range []string{"", "data", "wal"} {
		names, err := r.fs.List(r.fs.Join("db", dir))
		if err != nil {
			r.Fatal(err)
		}
		for _, n := range names {
			out = append(out, strings.TrimPrefix(dir+"/"+n, "/"))
		}
	}
	return out
}

// dataFiles are those of rows and changes. The log may prepare a file at any time.
func (r *rig) dataFiles() []string {
	return slices.DeleteFunc(r.files(), func(name string) bool { return !strings.HasPrefix(name, "data/") })
}

// rowsetFiles returns the number of files in the data directory.
func (r *rig) rowsetFiles() (n int) {
	for _, name := range r.files() {
		if strings.HasPrefix(name, "data/") {
			n++
		}
	}
	return n
}

func col(name string, t schema.Type) minikudu.Column { return minikudu.Column{Name: name, Type: t} }

func null(c minikudu.Column) minikudu.Column { c.Nullable = true; return c }

func table(key []string, columns ...minikudu.Column) minikudu.TableSpec {
	return minikudu.TableSpec{Key: key, Columns: columns}
}

// kvSpec has an int32 key and a nullable int32.
func kvSpec() minikudu.TableSpec {
	return table([]string{"key"}, col("key", schema.Int32), null(col("val", schema.Int32)))
}

// textSpec has a string key, a nullable string and a nullable binary.
func textSpec() minikudu.TableSpec {
	return table([]string{"k"}, col("k", schema.String), null(col("s", schema.String)), null(col("b", schema.Binary)))
}

// metricSpec has the key (host, ts) and three nullable columns.
func metricSpec() minikudu.TableSpec {
	return table([]string{"host", "ts"}, col("host", schema.String), col("ts", schema.UnixtimeMicros),
		null(col("v", schema.Double)), null(col("tag", schema.String)), null(col("n", schema.Int64)))
}
