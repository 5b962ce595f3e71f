package minikudu

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/minikudu/minikudu/compaction"
	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/tablet"
)

// CompactResult says what Compact did.
type CompactResult struct {
	Compactions       int
	Inputs, Outputs   int   // rowsets read and written
	BytesIn, BytesOut int64 // of rowset files
	RowsDropped       int64 // deleted rows whose bytes are gone
}

// Compact writes what the table holds in memory, then merges rowsets until the policy
// of package compaction finds no gain, and rewrites those with deleted rows or with
// files of changes. Writers and readers go on meanwhile; what they change while it runs
// may be left for the next time.
func (t *Table) Compact(ctx context.Context) (*CompactResult, error) {
	if err := t.db.enterWrite(); err != nil {
		return nil, err
	}
	defer t.db.gate.exit()
	if t.dropped.Load() {
		return nil, fmt.Errorf("table %q: %w", t.name, ErrNotFound)
	}
	if err := t.db.flushTable(ctx, t, "asked"); err != nil {
		return nil, err
	}
	res := &CompactResult{}
	if err := t.mergePlanned(ctx, res); err != nil {
		return res, err
	}
	if err := t.rewriteWasteful(ctx, res); err != nil {
		return res, err
	}
	return res, t.mergePlanned(ctx, res)
}

// mergePlanned merges as long as the policy finds a gain and the merges bring one.
func (t *Table) mergePlanned(ctx context.Context, res *CompactResult) error {
	o := compaction.DefaultOptions(t.db.opts.RowSetBytes)
	for debt := math.Inf(1); ; {
		sets, layout := t.tablet.Layout()
		plan, before := compaction.Pick(layout, o), debt
		if debt = compaction.Debt(layout, o); len(plan.Rowsets) == 0 || debt > before-o.Minimum/10 {
			return nil
		}
		inputs := make([]*diskrowset.RowSet, len(plan.Rowsets))
		for i, k := range plan.Rowsets {
			inputs[i] = sets[k]
		}
		if err := t.merge(ctx, inputs, res); err != nil {
			return err
		}
	}
}

// rewriteWasteful rewrites the rowsets that hold something reclaimable now, neighbours
// together, within the policy's budget.
func (t *Table) rewriteWasteful(ctx context.Context, res *CompactResult) error {
	budget := compaction.DefaultOptions(t.db.opts.RowSetBytes).Budget
	sets, layout := t.tablet.Layout()
	var inputs []*diskrowset.RowSet
	var bytes int64
	for i := range sets {
		if layout[i].Reclaimable == 0 {
			continue
		}
		if bytes += layout[i].Bytes; len(inputs) > 0 && bytes > budget {
			if err := t.merge(ctx, inputs, res); err != nil {
				return err
			}
			inputs, bytes = nil, layout[i].Bytes
		}
		inputs = append(inputs, sets[i])
	}
	if len(inputs) == 0 {
		return nil
	}
	return t.merge(ctx, inputs, res)
}

// merge merges the rowsets and adds what that did to res.
func (t *Table) merge(ctx context.Context, inputs []*diskrowset.RowSet, res *CompactResult) error {
	db := t.db
	if db.gate.isShut() {
		return ErrClosed
	}
	begin := time.Now()
	c, err := t.tablet.Compact(ctx, inputs)
	db.jobError(err)
	db.opts.Logger.Info("compaction", "table", t.name, "inputs", c.Inputs, "outputs", c.Outputs, "bytes in", c.BytesIn,
		"bytes out", c.BytesOut, "duration", time.Since(begin), "error", err)
	if err != nil {
		return fmt.Errorf("compacting: %w", t.tabletError(err))
	}
	db.compacted(&c)
	res.Compactions++
	res.Inputs, res.Outputs = res.Inputs+c.Inputs, res.Outputs+c.Outputs
	res.BytesIn, res.BytesOut = res.BytesIn+c.BytesIn, res.BytesOut+c.BytesOut
	res.RowsDropped += c.RowsIn - c.RowsOut
	return db.trimLog(ctx)
}

// compacted counts a compaction.
func (db *DB) compacted(c *tablet.Compacted) {
	db.memory.release(c.Memory)
	db.metrics.compactions.Add(1)
	db.metrics.compactedIn.Add(c.BytesIn)
	db.metrics.compactedOut.Add(c.BytesOut)
}
