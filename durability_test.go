package minikudu_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// fullVariable is the environment variable that makes the durability tests try
// everything: every bit, every call, a hundred kills a mode.
const fullVariable = "MINIKUDU_FULL"

func full() bool { return os.Getenv(fullVariable) != "" }

// tagSpec is a table whose rows say which batch they belong to.
func tagSpec() minikudu.TableSpec {
	return minikudu.TableSpec{Key: []string{"k"}, Columns: []minikudu.Column{
		{Name: "k", Type: schema.Int64}, {Name: "batch", Type: schema.Int64},
		{Name: "row", Type: schema.Int32}, {Name: "pad", Type: schema.String, Nullable: true}}}
}

// tagKey spreads the rows of a batch over the key space.
func tagKey(batch int64, row int) int64 {
	return int64(uint64(batch*4096+int64(row)) * 0x9E3779B97F4A7C15)
}

func tagPad(batch int64, row int) string { return fmt.Sprintf("batch %d, row %d", batch, row) }

// tagRows returns how many rows batch b has in table "a" and in table "b"; every third
// batch spans both.
func tagRows(b int64) map[string]int {
	n := []int{1, 3, 40, 8, 120}[b%5]
	switch b % 3 {
	case 0:
		return map[string]int{"a": n}
	case 1:
		return map[string]int{"b": n}
	}
	return map[string]int{"a": n, "b": n/2 + 1}
}

// addTagged adds the rows of batch b that table tab gets.
func addTagged(wb *minikudu.WriteBatch, tab *minikudu.Table, b int64, n int) {
	for i := range n {
		wb.Insert(tab, tagKey(b, i), b, i, tagPad(b, i))
	}
}

// tableState is what a run knows about a table.
type tableState int

const (
	absent tableState = iota
	creating
	present
	dropping
)

// journal is what a run has begun and what was acknowledged.
type journal struct {
	mu     sync.Mutex
	tables map[string]tableState
	rows   map[int64]map[string]int // rows of every batch begun, by table
	order  []int64                  // batches in the order they began
	acked  map[int64]bool
}

func newJournal() *journal {
	return &journal{tables: map[string]tableState{}, rows: map[int64]map[string]int{}, acked: map[int64]bool{}}
}

// clone returns the journal as it is now.
func (j *journal) clone() *journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := newJournal()
	for k, v := range j.tables {
		c.tables[k] = v
	}
	for k, v := range j.rows {
		c.rows[k] = v // the inner map never changes
	}
	for k := range j.acked {
		c.acked[k] = true
	}
	c.order = append(c.order, j.order...)
	return c
}

func (j *journal) setTable(name string, s tableState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tables[name] = s
}

func (j *journal) begin(b int64, rows map[string]int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rows[b] = rows
	j.order = append(j.order, b)
}

func (j *journal) ack(b int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acked[b] = true
}

func (j *journal) begun(b int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows[b] != nil
}

// there reports whether the first row of batch b is found in one of its tables.
func (j *journal) there(db *minikudu.DB, b int64) bool {
	for name := range j.rows[b] {
		if checkGet(db, name, b, true) == nil {
			return true
		}
	}
	return false
}

// lastTried returns the newest batch, -1 for none, and whether it was acknowledged.
func (j *journal) lastTried() (b int64, acked bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.order) == 0 {
		return -1, false
	}
	b = j.order[len(j.order)-1]
	return b, j.acked[b]
}

// create makes a table and notes it.
func (j *journal) create(db *minikudu.DB, name string) error {
	j.setTable(name, creating)
	_, err := db.CreateTable(ctx, name, tagSpec())
	if err == nil {
		j.setTable(name, present)
	}
	return err
}

// drop removes a table and notes it.
func (j *journal) drop(db *minikudu.DB, name string) error {
	j.setTable(name, dropping)
	err := db.DropTable(ctx, name)
	if err == nil {
		j.setTable(name, absent)
	}
	return err
}

// commit commits batch b with the given rows by table, and notes it. When an earlier try
// failed without it being known whether the batch is there, it may be there already.
func (j *journal) commit(db *minikudu.DB, b int64, rows map[string]int) error {
	var wb minikudu.WriteBatch
	for _, name := range []string{"a", "b", "c"} {
		if n := rows[name]; n > 0 {
			tab, err := db.Table(name)
			if err != nil {
				return err
			}
			addTagged(&wb, tab, b, n)
		}
	}
	again := j.begun(b)
	j.begin(b, rows)
	if _, err := db.Commit(ctx, &wb, nil); err != nil && !(again && errors.Is(err, minikudu.ErrAlreadyPresent)) {
		return err
	}
	j.ack(b)
	return nil
}

// tally counts the rows of each batch in a table, and fails on a row that nobody wrote.
func tally(tab *minikudu.Table) (map[int64]int, error) {
	out := map[int64]int{}
	seen := map[int64]bool{}
	for b, err := range tab.Scan(ctx, minikudu.Query{}) {
		if err != nil {
			return nil, err
		}
		keys, batches, rows := b.Column(0).Int64s(), b.Column(1).Int64s(), b.Column(2).Int32s()
		for i := range b.Len() {
			if keys[i] != tagKey(batches[i], int(rows[i])) || b.Column(3).StringAt(i) != tagPad(batches[i], int(rows[i])) {
				return nil, fmt.Errorf("table %s: row %d of batch %d is not what was written", tab.Name(), rows[i], batches[i])
			}
			if seen[keys[i]] {
				return nil, fmt.Errorf("table %s: row %d of batch %d is there twice", tab.Name(), rows[i], batches[i])
			}
			seen[keys[i]] = true
			out[batches[i]]++
		}
	}
	return out, nil
}

// promise says what must be there after a crash.
type promise int

const (
	prefix  promise = iota // some prefix of the batches, in the order of a single writer
	whole                  // no batch in part
	durable                // every acknowledged batch, no batch in part
)

// check compares the store with the journal.
func (j *journal) check(db *minikudu.DB, p promise) error {
	counts := map[string]map[int64]int{}
	for _, name := range []string{"a", "b", "c"} {
		tab, err := db.Table(name)
		there := err == nil
		if s := j.tables[name]; s == present && !there || s == absent && there {
			return fmt.Errorf("table %s: there %v, but its state is %d", name, there, s)
		}
		if !there {
			continue
		}
		if counts[name], err = tally(tab); err != nil {
			return err
		}
		for b := range counts[name] {
			if j.rows[b] == nil {
				return fmt.Errorf("table %s: batch %d was never begun", name, b)
			}
		}
	}
	return j.checkBatches(db, counts, p)
}

func (j *journal) checkBatches(db *minikudu.DB, counts map[string]map[int64]int, p promise) error {
	missing := int64(-1)
	for _, b := range j.order {
		all, none := true, true
		for name, n := range j.rows[b] {
			if counts[name] == nil {
				continue // the table is not there, which check has judged
			}
			all = all && counts[name][b] == n
			none = none && counts[name][b] == 0
			if err := checkGet(db, name, b, counts[name][b] > 0); err != nil {
				return err
			}
		}
		switch {
		case !all && !none:
			return fmt.Errorf("batch %d of %v rows is there in part: %d in a, %d in b", b, j.rows[b], counts["a"][b], counts["b"][b])
		case !all && p == durable && j.acked[b]:
			return fmt.Errorf("batch %d was acknowledged and is missing", b)
		case !all && missing < 0:
			missing = b
		case !none && missing >= 0 && p == prefix:
			return fmt.Errorf("batch %d is there, the earlier batch %d is not", b, missing)
		}
	}
	return nil
}

// checkGet looks the first row of a batch up by key.
func checkGet(db *minikudu.DB, name string, b int64, want bool) error {
	tab, err := db.Table(name)
	if err != nil {
		return err
	}
	_, err = tab.Get(ctx, tagKey(b, 0))
	if err != nil && !errors.Is(err, minikudu.ErrNotFound) {
		return err
	}
	if got := err == nil; got != want {
		return fmt.Errorf("table %s: get of batch %d: %v, a scan says %v", name, b, got, want)
	}
	return nil
}

// checkVerify requires that Verify finds no damage.
func checkVerify(db *minikudu.DB) error {
	r, err := db.Verify(ctx)
	if err != nil {
		return err
	}
	return errors.Join(r.Damage...)
}

// tiny are options under which a few rows make flushes and new log segments.
func tiny(fs vfs.FS) *minikudu.Options {
	return &minikudu.Options{FS: fs, MemoryBudget: 8 << 20, FlushBytes: 64 << 10, LogBytes: 16 << 10}
}

// checkGoesOn requires that a recovered store takes new tables and rows, and flushes.
func checkGoesOn(db *minikudu.DB, b int64) error {
	tab, err := db.Table("a")
	if errors.Is(err, minikudu.ErrNotFound) {
		tab, err = db.CreateTable(ctx, "a", tagSpec())
	}
	if err != nil {
		return err
	}
	var wb minikudu.WriteBatch
	addTagged(&wb, tab, b, 5)
	if _, err := db.Commit(ctx, &wb, nil); err != nil {
		return err
	}
	if err := tab.Flush(ctx); err != nil {
		return err
	}
	if err := checkGet(db, "a", b, true); err != nil {
		return err
	}
	return checkVerify(db)
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
