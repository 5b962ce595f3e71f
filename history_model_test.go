package minikudu_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/vfs/errorfs"
)

// state is the rows of the table from a commit on.
type state struct {
	at      minikudu.Timestamp
	rows    map[int]mrow
	touched map[int]bool // keys that the commit changed
}

// historian drives a table and a plain map with versions.
type historian struct {
	mutation
	retention time.Duration
	wall      atomic.Int64 // what the store takes for the present, in nanoseconds
	workers   int
	states    []state // ascending; the first is empty, at 0
	batch     *minikudu.WriteBatch
	rejected  int
	touched   map[int]bool
	before    map[int]bool       // keys that were live before the batch
	opened    minikudu.Timestamp // what was visible when the store was opened
	held      []*minikudu.Snapshot
	meddle    *errorfs.FS // commits happen between the calls of background work; nil: they do not
	dice      *rand.Rand  // of meddling
	busy      atomic.Bool // a commit between calls is on its way
	working   atomic.Bool // background work is on its way
	since     int         // operations since the last check
}

// modelKinds are the kinds of operations and how often each is drawn.
var modelKinds = []struct {
	name   string
	weight int
	do     func(*historian)
}{
	{"commit", 8, (*historian).commit},
	{"flush", 3, (*historian).flush},
	{"merge", 3, (*historian).merge},
	{"merge all", 3, (*historian).mergeAll},
	{"minor", 3, (*historian).minor},
	{"fold", 3, (*historian).fold},
	{"flush of changes", 3, (*historian).flushDeltas},
	{"gc", 3, (*historian).gc},
	{"settle", 3, (*historian).waitSettled},
	{"restart", 3, (*historian).restart},
	{"kill", 3, (*historian).kill},
	{"hold", 3, (*historian).hold},
	{"release", 3, (*historian).release},
	{"pin", 3, (*historian).pin},
	{"unpin", 3, (*historian).unpin},
	{"clock", 3, (*historian).tick},
	{"expired", 3, (*historian).checkExpired},
	{"as of", 3, func(h *historian) { h.checkAsOf(minikudu.Unordered) }},
	{"as of, ordered", 3, func(h *historian) { h.checkAsOf(minikudu.KeyOrder) }},
	{"as of, reverse", 3, func(h *historian) { h.checkAsOf(minikudu.KeyReverse) }},
	{"get as of", 3, (*historian).checkGet},
	{"diff", 3, (*historian).checkDiff},
}

// opNames are the names of ops.
var opNames = []string{"insert", "insert ignore", "upsert", "upsert ignore", "update", "update ignore", "delete", "delete ignore"}

// modelDraws are indexes of modelKinds, each as often as its weight, and for the operations
// on rows numbers below 0.
var modelDraws = func() (draws []int) {
	for i := range ops {
		draws = append(draws, slices.Repeat([]int{-i - 1}, 6)...)
	}
	for i, k := range modelKinds {
		draws = append(draws, slices.Repeat([]int{i}, k.weight)...)
	}
	// Draws prefer the front of a list.
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(draws), func(i, k int) { draws[i], draws[k] = draws[k], draws[i] })
	first := slices.IndexFunc(draws, func(d int) bool { return d < 0 })
	draws[0], draws[first] = draws[first], draws[0]
	return draws
}()

func (h *historian) open() {
	var fs vfs.FS = h.fs
	if h.meddle != nil {
		h.meddle = errorfs.Wrap(h.fs)
		fs = h.meddle
	}
	o := h.options()
	o.FS, o.Now, o.CompactionWorkers = fs, func() time.Time { return h.now() }, h.workers
	db, err := minikudu.Open("db", o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.db = db
	if h.tab, err = db.Table("t"); err != nil {
		spec := mutableSpec()
		spec.History = h.retention
		if h.retention == 0 {
			spec.History = minikudu.NoHistory
		}
		if h.tab, err = db.CreateTable(ctx, "t", spec); err != nil {
			h.t.Fatal(err)
		}
	}
	if h.meddle != nil {
		h.db.Pause() // all work is asked for, by the goroutine that may draw
		h.meddle.SetHook(h.between)
	}
}

// between commits now and then while files are written.
func (h *historian) between(c errorfs.Call) error {
	if !h.working.Load() || c.Kind != vfs.KindRowSet && c.Kind != vfs.KindDelta && c.Kind != vfs.KindManifest || !c.Op.Writes() ||
		!h.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer h.busy.Store(false)
	if h.dice.IntN(4) == 0 {
		h.seen["commit between calls"]++
		h.randomBatch()
		h.commit()
		h.checkNow()
	}
	return nil
}

// randomBatch adds operations that no draw decides.
func (h *historian) randomBatch() {
	for range 1 + h.dice.IntN(3) {
		op, row := ops[h.dice.IntN(len(ops))], map[string]any{"k": h.dice.IntN(6)}
		if op < minikudu.OpDelete {
			row["n"] = h.dice.Int64N(100)
		}
		h.add(op, row)
	}
}

// begin starts a batch unless there is one.
func (h *historian) begin() {
	if h.batch == nil {
		h.batch, h.rejected, h.touched, h.before = &minikudu.WriteBatch{}, 0, map[int]bool{}, map[int]bool{}
		for k := range h.rows {
			h.before[k] = true
		}
	}
}

// add adds an operation to the batch and plays it.
func (h *historian) add(op minikudu.Op, row map[string]any) {
	h.begin()
	k := row["k"].(int)
	_, live := h.rows[k]
	h.batch.Add(h.tab, op, row)
	accepted := h.play(op, k, row)
	if !accepted {
		h.rejected++
		return
	}
	_, now := h.rows[k]
	_, n := row["n"]
	_, s := row["s"]
	if live != now || live && (n || s) && op >= minikudu.OpUpsert && op < minikudu.OpDelete {
		h.touched[k] = true
	}
}

// write draws an operation on a row.
func (h *historian) write(op minikudu.Op) {
	row := map[string]any{"k": rapid.IntRange(0, 5).Draw(h.t, "k")}
	if op < minikudu.OpDelete {
		if rapid.Bool().Draw(h.t, "has n") {
			row["n"] = rapid.Int64Range(0, 99).Draw(h.t, "n")
		}
		if rapid.Bool().Draw(h.t, "has s") {
			row["s"] = rapid.SampledFrom([]any{nil, "", "x", "yy"}).Draw(h.t, "s")
		}
		if rapid.IntRange(0, 3).Draw(h.t, "has c") == 0 {
			row["c"] = rapid.Int64Range(0, 9).Draw(h.t, "c")
		}
	}
	h.add(op, row)
}

// commit commits the batch.
func (h *historian) commit() {
	h.begin()
	b := h.batch
	h.batch = nil
	res, err := h.db.Commit(ctx, b, nil)
	if h.rejected > 0 != errors.Is(err, minikudu.ErrRowsRejected) || err != nil && h.rejected == 0 || res.Rejected != int64(h.rejected) {
		h.t.Fatalf("result %+v, %v; want %d rejected", res, err, h.rejected)
	}
	for k := range h.touched {
		if _, live := h.rows[k]; !live && !h.before[k] {
			delete(h.touched, k) // lived within the batch only
		}
	}
	if len(h.touched) > 0 {
		h.states = append(h.states, state{res.Timestamp, maps.Clone(h.rows), h.touched})
	}
}

// work runs a step between whose calls there may be commits.
func (h *historian) work(f func() error) {
	h.settle()
	h.working.Store(true)
	err := f()
	h.working.Store(false)
	if err != nil {
		h.t.Fatal(err)
	}
	h.check()
	h.checkPast()
}

// settle commits what is pending: structural steps happen between batches.
func (h *historian) settle() {
	if h.batch != nil {
		h.commit()
	}
}

func (h *historian) flush() { h.work(func() error { return h.tab.Flush(ctx) }) }

func (h *historian) merge() {
	h.work(func() error { _, err := h.tab.Compact(ctx); return err })
}

func (h *historian) mergeAll() {
	h.work(func() error { _, err := h.tab.CompactAll(ctx); return err })
}

func (h *historian) minor() {
	h.work(func() error { return h.tab.CompactMinor(ctx) })
}

func (h *historian) flushDeltas() { h.work(func() error { return h.tab.FlushDeltas(ctx) }) }

func (h *historian) gc() { h.work(func() error { _, err := h.tab.GC(ctx); return err }) }

func (h *historian) waitSettled() {
	h.work(func() error {
		if h.meddle != nil {
			return nil // paused work would be waited for
		}
		return h.db.WaitSettled(ctx)
	})
}

func (h *historian) fold() {
	names := []string{"n", "s"}[:rapid.IntRange(0, 2).Draw(h.t, "columns")]
	h.work(func() error { return h.tab.CompactDeltas(ctx, names...) })
}

func (h *historian) restart() {
	h.settle()
	if err := h.db.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.reopened()
}

func (h *historian) kill() {
	h.settle()
	after := h.fs.KillClone()
	_ = h.db.Close()
	h.fs = after
	h.reopened()
}

func (h *historian) reopened() {
	h.held = nil // they do not outlive the process
	h.open()
	s, err := h.db.Snapshot()
	if err != nil {
		h.t.Fatal(err)
	}
	h.opened = s.Timestamp()
	s.Close()
	h.check()
	h.checkPast()
}

// hold holds the present, or a time of the past that can still be read.
func (h *historian) hold() {
	h.settle()
	at := minikudu.Timestamp(0)
	if rapid.Bool().Draw(h.t, "in the past") {
		at = h.drawTime(h.mark())
	}
	s, err := h.db.SnapshotAt(at)
	if err != nil {
		h.t.Fatalf("hold %d: %v", at, err)
	}
	h.held = append(h.held, s)
}

func (h *historian) release() {
	for len(h.held) > 0 {
		i := rapid.IntRange(0, len(h.held)-1).Draw(h.t, "held")
		h.held[i].Close()
		h.held = slices.Delete(h.held, i, i+1)
		if rapid.Bool().Draw(h.t, "enough") {
			break
		}
	}
}

func (h *historian) pin() {
	h.settle()
	name, at := strconv.Itoa(rapid.IntRange(0, 2).Draw(h.t, "pin")), minikudu.Timestamp(0)
	if rapid.Bool().Draw(h.t, "in the past") {
		at = h.drawTime(h.mark())
	}
	_, err := h.db.Pin(ctx, name, at)
	if err != nil && !errors.Is(err, minikudu.ErrAlreadyPresent) {
		h.t.Fatalf("pin %d: %v", at, err)
	}
}

func (h *historian) unpin() {
	for _, p := range h.db.Pins() {
		if err := h.db.Unpin(ctx, p.Name); err != nil {
			h.t.Fatal(err)
		}
	}
}

// tick lets time pass: a little, or so much that history expires.
func (h *historian) tick() {
	h.wall.Add(int64(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(h.t, "pass")))
}

func (h *historian) now() time.Time { return time.Unix(0, h.wall.Load()) }

// mark returns the time from which on the past can be read.
func (h *historian) mark() minikudu.Timestamp {
	mark := max(h.opened, h.states[len(h.states)-1].at)
	if h.retention > 0 {
		mark = min(mark, minikudu.TimestampAt(h.now().Add(-h.retention)))
	}
	for _, s := range h.held {
		mark = min(mark, s.Timestamp())
	}
	for _, p := range h.db.Pins() {
		mark = min(mark, p.Timestamp)
	}
	return mark
}

// drawTime draws a time from the given one on: of a commit, or just before or after one.
func (h *historian) drawTime(from minikudu.Timestamp) minikudu.Timestamp {
	i, _ := slices.BinarySearchFunc(h.states, from, func(s state, t minikudu.Timestamp) int { return int(int64(s.at) - int64(t)) })
	times := []minikudu.Timestamp{from}
	newest := h.states[len(h.states)-1].at
	for _, s := range h.states[i:] {
		for _, t := range []minikudu.Timestamp{s.at - 1, s.at, s.at + 1} {
			if t >= from && t <= newest {
				times = append(times, t)
			}
		}
	}
	return max(1, rapid.SampledFrom(times).Draw(h.t, "time"))
}

// at returns the index of the state at a time.
func (h *historian) at(t minikudu.Timestamp) int {
	i := 0
	for i+1 < len(h.states) && h.states[i+1].at <= t {
		i++
	}
	return i
}

// checkPast compares the past with the model.
func (h *historian) checkPast() {
	h.checkAsOf(rapid.SampledFrom([]minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse}).Draw(h.t, "order"))
	h.checkDiff()
	for _, s := range h.held {
		h.checkState(s.Timestamp(), minikudu.KeyOrder)
	}
}

func (h *historian) checkAsOf(order minikudu.Order) {
	h.settle()
	h.checkState(h.drawTime(h.mark()), order)
}

// checkState compares a scan and a count as of a time with the model.
func (h *historian) checkState(at minikudu.Timestamp, order minikudu.Order) {
	want := h.states[h.at(at)].rows
	got := map[int]mrow{}
	var keys []int
	for b, err := range h.tab.Scan(ctx, minikudu.Query{AsOf: at, Order: order}) {
		if err != nil {
			h.t.Fatalf("scan as of %d: %v", at, err)
		}
		for i := range b.Len() {
			k, row := int(b.Column(0).Int32s()[i]), b.Row(i)
			keys = append(keys, k)
			got[k] = mrow{row[1].(int64), row[2], row[3]}
		}
	}
	if len(keys) != len(want) || !maps.Equal(got, want) {
		h.t.Fatalf("as of %d, order %d: %v, keys %v, want %v", at, order, got, keys, want)
	}
	if order == minikudu.KeyReverse {
		slices.Reverse(keys)
	}
	if order != minikudu.Unordered && !slices.IsSorted(keys) {
		h.t.Fatalf("as of %d, order %d: keys %v", at, order, keys)
	}
	n, err := h.tab.Aggregate(ctx, minikudu.Query{AsOf: at}, nil, minikudu.Count(), minikudu.Sum("n"))
	if err != nil || n.Column(0).Int64s()[0] != int64(len(want)) {
		h.t.Fatalf("count as of %d: %v, %v, want %d", at, n, err, len(want))
	}
	var sum int64
	for _, r := range want {
		sum += r.n
	}
	if len(want) > 0 && n.Column(1).Int64s()[0] != sum {
		h.t.Fatalf("sum as of %d: %v, want %d", at, n, sum)
	}
}

func (h *historian) checkGet() {
	h.settle()
	at, k := h.drawTime(h.mark()), rapid.IntRange(0, 5).Draw(h.t, "k")
	want, live := h.states[h.at(at)].rows[k]
	r, err := h.tab.GetAsOf(ctx, at, k)
	if live != (err == nil) || live && (r.Value("n") != want.n || r.Value("s") != want.s || r.Value("c") != want.c) {
		h.t.Fatalf("get %d as of %d: %v, %v; want %v, %v", k, at, r, err, want, live)
	}
}

// checkExpired requires that what is too old cannot be read.
func (h *historian) checkExpired() {
	h.settle()
	if mark := h.mark(); mark > 1 {
		for _, err := range h.tab.Scan(ctx, minikudu.Query{AsOf: mark - 1}) {
			if errors.Is(err, minikudu.ErrHistoryExpired) {
				return
			}
			h.t.Fatalf("a read before %d: %v", mark, err)
		}
		h.t.Fatalf("a read before %d delivers nothing", mark)
	}
}

// checkDiff compares the changes between two times with the model.
func (h *historian) checkDiff() {
	h.settle()
	from := h.drawTime(h.mark())
	to := h.drawTime(from)
	a, b := h.at(from), h.at(to)
	want := map[int]string{}
	for k := range 6 {
		_, was := h.states[a].rows[k]
		row, live := h.states[b].rows[k]
		touched := false
		for i := a + 1; i <= b; i++ {
			touched = touched || h.states[i].touched[k]
		}
		for i := a + 1; i <= b && !live; i++ {
			r, before := h.states[i-1].rows[k]
			if _, after := h.states[i].rows[k]; before && !after {
				row = r
				break
			}
		}
		if touched && (was || live) {
			want[k] = fmt.Sprint(live, row)
		}
	}
	reverse := rapid.Bool().Draw(h.t, "reverse")
	liveOnly := rapid.IntRange(0, 3).Draw(h.t, "live only") == 0
	got := map[int]string{}
	last := -1
	for b, err := range h.tab.Diff(ctx, minikudu.DiffQuery{From: from, To: to, Reverse: reverse, LiveOnly: liveOnly}) {
		if err != nil {
			h.t.Fatalf("diff (%d, %d]: %v", from, to, err)
		}
		for i := range b.Len() {
			k, row := int(b.Column(0).Int32s()[i]), b.Row(i)
			if last >= 0 && (k > last) == reverse || k == last {
				h.t.Fatalf("diff: key %d after %d", k, last)
			}
			last = k
			got[k] = fmt.Sprint(!b.Deleted(i), mrow{row[1].(int64), row[2], row[3]})
		}
	}
	if liveOnly {
		maps.DeleteFunc(want, func(_ int, s string) bool { return s[0] == 'f' })
	}
	if !maps.Equal(got, want) {
		h.t.Fatalf("diff (%d, %d]: %v, want %v", from, to, got, want)
	}
}

// checkNow is check for a goroutine that must not draw.
func (h *historian) checkNow() {
	got := map[int]mrow{}
	for b, err := range h.tab.Scan(ctx, minikudu.Query{}) {
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range b.Len() {
			row := b.Row(i)
			got[int(b.Column(0).Int32s()[i])] = mrow{row[1].(int64), row[2], row[3]}
		}
	}
	if !maps.Equal(got, h.rows) {
		h.t.Fatalf("%v, want %v", got, h.rows)
	}
}

// step does one operation.
func (h *historian) step() {
	if n := rapid.SampledFrom(modelDraws).Draw(h.t, "operation"); n < 0 {
		h.seen[opNames[-n-1]]++
		h.write(ops[-n-1])
	} else {
		h.seen[modelKinds[n].name]++
		modelKinds[n].do(h)
	}
	if h.since++; h.since == 64 {
		h.since = 0
		h.settle()
		h.check()
		h.checkPast()
	}
}

// modelLength is the number of operations of one run of the model.
const modelLength = 250

// historyOps is the number of operations of a test of the model.
func historyOps() int {
	if n, err := strconv.Atoi(os.Getenv("MINIKUDU_MODEL_OPS")); err == nil {
		return n
	}
	if testing.Short() {
		return 1000
	}
	return 5000
}

// checkHistory plays random operations against a map with versions.
func checkHistory(t *testing.T, meddle bool) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	defer func() { _ = checks.Value.Set(before) }()
	if err := checks.Value.Set(strconv.Itoa(max(1, historyOps()/modelLength))); err != nil {
		t.Fatal(err)
	}
	seen, done := map[string]int{}, 0
	rapid.Check(t, func(r *rapid.T) {
		h := &historian{mutation: mutation{t: r, fs: vfs.NewMem(), rows: map[int]mrow{}, seen: seen}}
		h.states = []state{{rows: map[int]mrow{}}}
		h.wall.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
		h.retention = rapid.SampledFrom([]time.Duration{0, 10 * time.Second, minikudu.DefaultHistory, minikudu.AllHistory}).Draw(r, "retention")
		h.flushBytes = 64 << 20
		if meddle {
			h.workers = -1
			h.meddle, h.dice = errorfs.Wrap(h.fs), rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "dice"), 1))
		} else if h.workers = rapid.SampledFrom([]int{-1, 1}).Draw(r, "workers"); rapid.IntRange(0, 3).Draw(r, "tiny stores") == 0 {
			h.flushBytes = 1
		}
		h.open()
		defer func() { _ = h.db.Close() }()
		for range modelLength {
			h.step()
			done++
		}
		h.flush()
		if rep, err := h.db.Verify(ctx); err != nil || len(rep.Damage) > 0 {
			r.Fatalf("verify: %+v, %v", rep, err)
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6.2f %% %7d %s", 100*float64(seen[kind])/float64(done), seen[kind], kind)
		if done >= 50_000 && seen[kind]*100 < done {
			t.Errorf("%s: less than 1 %% of %d operations", kind, done)
		}
	}
}

// TestHistoryModel plays every operation on rows, flushes, compactions, restarts, kills,
// held snapshots, pins, reads of the past in every order and diffs against a map with
// versions. MINIKUDU_MODEL_OPS is the number of operations.
func TestHistoryModel(t *testing.T) { checkHistory(t, false) }

// TestHistoryModelBetweenCalls is TestHistoryModel with commits between the file system's
// calls of flushes and compactions.
func TestHistoryModelBetweenCalls(t *testing.T) { checkHistory(t, true) }
