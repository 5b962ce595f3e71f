package compaction

// Waste counts what a rewrite of a rowset at the present ancient history mark is
// certain to free.
//
// Only certain savings may be counted: a row is dead when its delete, in a durable
// delta, is at or before the mark, and history has expired when the newest change of
// an UNDO file is. Then a rewritten rowset has no waste until the mark moves past more
// deletes and changes, and every plan that counts on waste frees at least a fifth of a
// rowset. What it frees was written once and is not freed again, so rewriting for the
// sake of waste cannot loop: alone, it reads five bytes at most for each one freed.
type Waste struct {
	Rows, Dead int64 // stored rows, and those of them that are dead
	Base       int64 // bytes that the stored rows occupy
	History    int64 // bytes of expired UNDO files
	Unused     int64 // bytes of the rowset's files that nothing refers to
}

// Reclaimable returns the bytes that a rewrite frees.
func (w Waste) Reclaimable() int64 {
	n := w.History + w.Unused
	if w.Rows > 0 {
		n += int64(float64(w.Base) * (float64(min(w.Dead, w.Rows)) / float64(w.Rows)))
	}
	return n
}

const (
	// wasteDue is the share of waste from which a rowset is worth rewriting alone.
	wasteDue = 0.2
	// wasteGain is the value of rewriting a rowset that is all waste, in minima: at
	// wasteDue it is twice the minimum, which also pays for the support adjustment.
	wasteGain = 10
)

// wasteValue is what freeing the rowset's waste is worth, as a gain in average height.
func (o *Options) wasteValue(r *RowSet) float64 {
	if r.Reclaimable <= 0 {
		return 0
	}
	share := min(1, float64(r.Reclaimable)/float64(max(1, r.disk())))
	if share < wasteDue {
		return 0
	}
	return wasteGain * o.Minimum * share
}
