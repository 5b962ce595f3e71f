package minikudu

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/rowset"
)

// The credit of a table bounds what merges of its rowsets write while it is written to;
// docs/design/maintenance.md says why the numbers are what they are.
const (
	creditPerByte   = 4                // bytes of merges that a flushed byte pays for
	creditPerSecond = 2 * mib          // and a second while the table is quiet
	quietAfter      = 10 * time.Second // without a flush the table is quiet
	busyGain        = 3                // rowsets fewer that a look-up must ask, for a merge of a table that is written to
	busyShare       = 3                // and at least this part of the height: a third
	busyInputs      = 32               // or rowsets that become few
	minorFiles      = 8                // files of changes of a rowset that are worth merging
)

// planner decides which merge of a table's rowsets is worth doing. It keeps the table's
// credit, and a plan for as long as the rowsets stay the same.
type planner struct {
	options compaction.Options

	mu       sync.Mutex
	credit   int64                              // bytes that merges may read
	credited time.Time                          // until when time has paid
	flushed  time.Time                          // the last flush
	plan     *mergePlan                         // of the present rowsets, nil for none made
	stuck    []*rowset.Meta                     // rowsets that merging did not improve
	retry    [compaction.DropRowSet + 1]backoff // by kind
}

// mergePlan is the merge that the policy finds best in a layout.
type mergePlan struct {
	all    bool           // made with the whole budget, not within the credit
	metas  []*rowset.Meta // the layout
	sets   []*diskrowset.RowSet
	debt   float64              // of the layout
	inputs []*diskrowset.RowSet // to be merged; none: nothing is worth it
	bytes  int64
	score  float64
	waste  bool // a fifth of it is reclaimed
	good   bool // worth doing while the table is written to
}

func newPlanner(rowSetBytes int64, now time.Time) *planner {
	return &planner{options: compaction.DefaultOptions(rowSetBytes), credited: now}
}

// earn adds what a flush of n bytes pays for.
func (p *planner) earn(n int64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 {
		return // of rows that were dead already
	}
	p.flushed = now
	p.add(creditPerByte * n)
}

func (p *planner) add(n int64) { p.credit = max(0, min(p.credit+n, p.options.Budget)) }

// spend takes what a merge of n bytes costs.
func (p *planner) spend(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(-n)
}

// tick adds what the quiet time since the last call pays for.
func (p *planner) tick(now time.Time) {
	from := p.credited
	if quiet := p.flushed.Add(quietAfter); from.Before(quiet) {
		from = quiet
	}
	if d := now.Sub(from); d > 0 {
		p.add(int64(d.Seconds() * creditPerSecond))
	}
	p.credited = now
}

// isQuiet reports whether the table is not written to at present.
func (p *planner) isQuiet(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.flushed) >= quietAfter
}

// affords returns after how long the credit covers work on n bytes, without any flush.
func (p *planner) affords(n int64, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick(now)
	missing := min(n, p.options.Budget) - p.credit
	if missing <= 0 {
		return 0
	}
	return max(0, quietAfter-now.Sub(p.flushed)) + payTime(missing)
}

// payTime is how long it takes until time has paid for n bytes.
func payTime(n int64) time.Duration {
	return time.Duration(float64(n)/creditPerSecond*float64(time.Second)) + time.Millisecond
}

// next returns the merge to do now, nil for none. Then a merge may be due after the
// given time, without any flush; 0 for no such merge.
func (p *planner) next(t *Table, now time.Time) (*mergePlan, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick(now)
	busy := quietAfter - now.Sub(p.flushed)
	if pl := p.planned(t, busy <= 0); len(pl.inputs) > 0 {
		switch missing := min(pl.bytes, p.options.Budget) - p.credit; {
		case pl.waste || pl.good, busy <= 0 && missing <= 0:
			return pl, 0
		case busy <= 0:
			return nil, payTime(missing)
		}
	}
	return nil, max(0, busy)
}

// settle returns the merge to do whatever it costs, nil for none.
func (p *planner) settle(t *Table) *mergePlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pl := p.planned(t, true); len(pl.inputs) > 0 {
		return pl
	}
	return nil
}

// planned returns the plan for the table's present rowsets: the best within the whole
// budget, or within the credit.
func (p *planner) planned(t *Table, all bool) *mergePlan {
	metas := metasOf(t.tablet.RowSets())
	if p.plan == nil || p.plan.all != all || !slices.Equal(p.plan.metas, metas) {
		p.plan = p.make(t, all)
	}
	if slices.Equal(p.plan.metas, p.stuck) {
		return &mergePlan{}
	}
	return p.plan
}

func metasOf(sets []*diskrowset.RowSet) []*rowset.Meta {
	out := make([]*rowset.Meta, len(sets))
	for i, rs := range sets {
		out[i] = rs.Meta()
	}
	return out
}

// make makes a plan.
func (p *planner) make(t *Table, all bool) *mergePlan {
	o := p.options
	if !all {
		o.Budget = max(1, p.credit)
	}
	sets, layout := t.tablet.Layout()
	pl := &mergePlan{all: all, sets: sets, metas: metasOf(sets), debt: compaction.Debt(layout, o)}
	pl.choose(layout, compaction.Pick(layout, o))
	height := compaction.Place(layout).AverageHeight
	pl.good = p.credit > 0 && (pl.score >= max(busyGain, height/busyShare) || len(pl.inputs) >= busyInputs)
	if !all && !pl.good && !pl.waste {
		// A budget of a byte leaves rowsets to be rewritten alone, which only waste is worth.
		o.Budget = 1
		pl.choose(layout, compaction.Pick(layout, o))
	}
	return pl
}

// choose takes a plan of the policy, unless it is empty.
func (pl *mergePlan) choose(layout []compaction.RowSet, picked compaction.Plan) {
	if len(picked.Rowsets) == 0 {
		return
	}
	pl.inputs, pl.bytes, pl.score = nil, picked.Bytes, picked.Quality
	for _, k := range picked.Rowsets {
		pl.inputs = append(pl.inputs, pl.sets[k])
	}
	pl.waste = picked.Reclaimable*5 >= picked.Bytes
}

// merged takes note of a merge that made outputs of the plan's inputs, and reports
// whether it brought what it promised: the debt of the layout that the plan was made of,
// without what came meanwhile, fell.
func (p *planner) merged(t *Table, pl *mergePlan, outputs []*diskrowset.RowSet) bool {
	sets, layout := t.tablet.Layout()
	var after []compaction.RowSet
	known := setOf(pl.sets, outputs)
	for i, rs := range sets {
		if known[rs] {
			after = append(after, layout[i])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if compaction.Debt(after, p.options) <= pl.debt-p.options.Minimum/10 {
		return true
	}
	p.stuck = metasOf(sets)
	return false
}

func setOf(lists ...[]*diskrowset.RowSet) map[*diskrowset.RowSet]bool {
	out := map[*diskrowset.RowSet]bool{}
	for _, list := range lists {
		for _, rs := range list {
			out[rs] = true
		}
	}
	return out
}

// backoff is when work that failed is tried again.
type backoff struct {
	pause time.Duration // after the last failure, 0 when it succeeded
	until time.Time
}

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 10 * time.Second
)

// ended takes note of how a step of a kind ended.
func (p *planner) ended(k compaction.Kind, err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.retry[k] = backoff{}
		return
	}
	pause := min(max(firstBackoff, 2*p.retry[k].pause), lastBackoff)
	p.retry[k] = backoff{pause, now.Add(pause)}
}

// rests returns for how long a kind of work is not tried, since it failed.
func (p *planner) rests(k compaction.Kind, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.retry[k].until.Sub(now))
}

// turn is taken by the one who compacts a table.
type turn struct {
	token  chan struct{} // holds one while it is taken
	halted atomic.Int64  // who want it and let no background step begin
	mu     sync.Mutex
	cancel context.CancelFunc // ends the background step that holds it, nil for none
}

func newTurn() *turn { return &turn{token: make(chan struct{}, 1)} }

// taken reports whether somebody compacts.
func (n *turn) taken() bool { return len(n.token) > 0 || n.halted.Load() > 0 }

// try takes the turn for a background step, if it is free, and returns a context that
// halt ends.
func (n *turn) try(ctx context.Context) (context.Context, bool) {
	select {
	case n.token <- struct{}{}:
	default:
		return nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	n.mu.Lock()
	n.cancel = cancel
	n.mu.Unlock()
	if n.halted.Load() > 0 {
		n.give()
		return nil, false
	}
	return ctx, true
}

// take waits for the turn until ctx ends, or shut is closed: then it is ErrClosed.
func (n *turn) take(ctx context.Context, shut <-chan struct{}) error {
	select {
	case n.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-shut:
		return ErrClosed
	}
}

// halt ends a background step in progress and takes the turn.
func (n *turn) halt(ctx context.Context, shut <-chan struct{}) error {
	defer n.hold()()
	n.mu.Lock()
	if n.cancel != nil {
		n.cancel()
	}
	n.mu.Unlock()
	return n.take(ctx, shut)
}

// hold lets no background step begin until the function that it returns is called.
func (n *turn) hold() (release func()) {
	n.halted.Add(1)
	return func() { n.halted.Add(-1) }
}

// give ends try, take and halt.
func (n *turn) give() {
	n.mu.Lock()
	if n.cancel != nil {
		n.cancel()
		n.cancel = nil
	}
	n.mu.Unlock()
	<-n.token
}
