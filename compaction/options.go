package compaction

import (
	"errors"
	"fmt"
)

// Options are the settings of [Pick].
type Options struct {
	// Target is the size in bytes at which a merge begins a new output.
	Target int64
	// Budget is how many bytes one plan may name. With more than eight targets, rowsets
	// that miss the target by little can add up to a plan that is then rejected
	// (invariant 3) and may hide one of as little value.
	Budget int64
	// SmallRowSets is the value of merging an almost empty rowset, as a gain in average
	// height; it must be below Minimum.
	SmallRowSets float64
	// Minimum is the quality that a plan must exceed, above 0.003.
	Minimum float64
	// Ratio is how much better, as a factor, a plan must be able to get before it is
	// searched for exactly; at least 1.
	Ratio float64
}

// DefaultOptions returns Kudu's settings for outputs of target bytes. Its target is
// 32 MiB.
func DefaultOptions(target int64) Options {
	return Options{Target: target, Budget: 8 * target, SmallRowSets: 0.009, Minimum: 0.01, Ratio: 1.05}
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("compaction options: "+format, args...))
		}
	}
	check(o.Target > 0, "target of %d bytes", o.Target)
	check(o.Budget > 0, "budget of %d bytes", o.Budget)
	check(o.Minimum > supportAdjust-1, "minimum improvement %v is not above %.3f", o.Minimum, supportAdjust-1)
	check(o.SmallRowSets >= 0, "value of small rowsets %v", o.SmallRowSets)
	// Otherwise one small rowset would be rewritten for ever.
	check(o.SmallRowSets < o.Minimum, "value of small rowsets %v is not below the minimum improvement %v", o.SmallRowSets, o.Minimum)
	check(o.Ratio >= 1, "approximation ratio %v is below 1", o.Ratio)
	return errors.Join(errs...)
}

// unit is the granularity of weights: a MiB, or less for small targets and budgets.
func (o *Options) unit() int64 { return max(1, min(1<<20, o.Target/32, o.Budget/64)) }
