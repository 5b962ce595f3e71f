package predicate

import (
	"math/bits"

	"github.com/minikudu/minikudu/internal/kernel"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// prepared is a leaf made ready to run: the fields its filter function needs.
type prepared struct {
	filter func(l *leaf, v *vector.Vector, sel vector.Bitmap)
	keep   uint64 // all ones, or zero when the leaf is negated

	lo, width       uint64 // inSpan of up to 64 bits: first key and distance to the last
	lo128, width128 schema.Int128
	list            []int64             // inSet: up to listMax keys
	dense           []uint8             // inSet over a small range, from lo on
	hash            *hashSet            // inSet, larger
	point           string              // bytes: the only text, when isPoint
	isPoint         bool                //
	texts           map[string]struct{} // inSet of bytes
	loText, hiText  string              // inSpan of bytes
	hiOpen          bool
}

const (
	listMax  = 8       // keys tested one by one
	denseMax = 1 << 15 // range of keys held as a table
)

// prepare chooses the filter of the leaf.
func (l *leaf) prepare() {
	k := &l.run
	if !l.not {
		k.keep = ^uint64(0)
	}
	switch l.kind {
	case schema.KindBytes:
		k.filter = filterBytes
		l.prepareBytes()
		return
	case schema.KindBool:
		k.filter = filterBools
	case schema.KindInt8:
		k.filter = filterFixed[uint8]
	case schema.KindInt16:
		k.filter = filterFixed[uint16]
	case schema.KindInt32:
		k.filter = filterFixed[uint32]
	case schema.KindInt64:
		k.filter = filterFixed[uint64]
	case schema.KindInt128:
		k.filter = filterWide
	case schema.KindFloat32:
		k.filter = filterFloat[int32]
	case schema.KindFloat64:
		k.filter = filterFloat[int64]
	}
	l.prepareFixed()
}

func (l *leaf) prepareFixed() {
	switch l.test {
	case inSpan:
		l.run.setSpan(l.span.lo.key, l.span.hi.last(l.kind))
	case inSet:
		l.run.setKeys(l.set, l.kind)
	}
}

func (k *prepared) setSpan(lo, last key) {
	k.lo, k.width = lo.n.Lo, last.n.Lo-lo.n.Lo
	low, borrow := bits.Sub64(last.n.Lo, lo.n.Lo, 0)
	high, _ := bits.Sub64(uint64(last.n.Hi), uint64(lo.n.Hi), borrow)
	k.lo128, k.width128 = lo.n, schema.Int128{Lo: low, Hi: int64(high)}
}

func (k *prepared) setKeys(keys []key, kind schema.Kind) {
	first, last := keys[0], keys[len(keys)-1]
	k.setSpan(first, last)
	if kind == schema.KindInt128 {
		return
	}
	list := make([]int64, len(keys))
	for i := range keys {
		list[i] = int64(keys[i].n.Lo)
	}
	switch {
	case len(list) <= listMax:
		k.list = list
	case k.width < denseMax && !kind.IsFloat():
		k.dense = make([]uint8, k.width+2)
		for _, x := range list {
			k.dense[uint64(x)-k.lo] = 1
		}
	default:
		k.hash = newHashSet(list)
	}
}

func filterBools(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	filterBool(sel, v.Bits(), l.run.lo != 0, l.run.keep)
}

func filterFixed[T interface {
	kernel.Unsigned
	vector.Fixed
}](l *leaf, v *vector.Vector, sel vector.Bitmap) {
	k, vals := &l.run, vector.Values[T](v)
	switch {
	case l.test == inSpan:
		kernel.FilterSpan(sel, vals, T(k.lo), T(k.width), k.keep)
	case k.list != nil:
		kernel.FilterList(sel, vals, k.list, k.keep)
	case k.dense != nil:
		kernel.FilterDense(sel, vals, T(k.lo), k.dense, k.keep)
	default:
		if !l.not {
			kernel.FilterSpan(sel, vals, T(k.lo), T(k.width), k.keep) // few get as far as the hash
		}
		shift := 64 - 8*l.kind.Width() // sign extension
		eachSelected(sel, func(row int) bool {
			return k.hash.has(int64(uint64(vals[row])<<shift)>>shift) != l.not
		})
	}
}

func filterFloat[T int32 | int64](l *leaf, v *vector.Vector, sel vector.Bitmap) {
	k, vals := &l.run, vector.Values[T](v)
	switch {
	case l.test == inSpan:
		kernel.FilterFloatSpan(sel, vals, T(k.lo), k.width, k.keep)
	case k.list != nil:
		kernel.FilterFloatList(sel, vals, k.list, k.keep)
	default:
		if !l.not {
			kernel.FilterFloatSpan(sel, vals, T(k.lo), k.width, k.keep)
		}
		eachSelected(sel, func(row int) bool { return k.hash.has(int64(kernel.FloatKey(vals[row]))) != l.not })
	}
}

func filterWide(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	vals := vector.Values[schema.Int128](v)
	if l.test == inSpan {
		filterWideSpan(sel, vals, l.run.lo128, l.run.width128, l.run.keep)
		return
	}
	eachSelected(sel, func(row int) bool { return l.accepts(key{n: vals[row]}) })
}

// eachSelected clears the selected rows that f rejects.
func eachSelected(sel vector.Bitmap, f func(row int) bool) {
	for i, w := range sel {
		for m := w; m != 0; m &= m - 1 {
			if !f(i<<6 + bits.TrailingZeros64(m)) {
				w &^= m & -m
			}
		}
		sel[i] = w
	}
}

func (l *leaf) prepareBytes() {
	k := &l.run
	switch l.test {
	case inSpan:
		k.loText, k.hiText, k.hiOpen = l.span.lo.s, l.span.hi.s, l.span.hi.end
		p, ok := l.span.point(l.kind)
		k.point, k.isPoint = p.s, ok
	case inSet:
		k.texts = make(map[string]struct{}, len(l.set))
		for _, s := range l.set {
			k.texts[s.s] = struct{}{}
		}
	}
}

// filterBytes tests the selected rows one by one; v may be in dictionary form.
func filterBytes(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	switch plain := v.Dict() == nil; {
	case plain && l.run.isPoint:
		filterPoint(sel, v.Offsets(), v.Data(), l.run.point, l.not)
	case plain && l.test == isLike && l.like.needle != "":
		filterNeedle(l, v, sel)
	default:
		filterTexts(l, v, sel)
	}
}

// filterTexts tests the selected rows, whatever the test.
func filterTexts(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	for i, w := range sel {
		for m := w; m != 0; m &= m - 1 {
			if l.matches(v.BytesAt(i<<6+bits.TrailingZeros64(m))) == l.not {
				w &^= m & -m
			}
		}
		sel[i] = w
	}
}

// needleWords is how many words of a selection are searched at a time.
const needleWords = 64

// filterNeedle looks for the text that every match contains, in many rows at once, and tests
// those that have it unless that is enough.
func filterNeedle(l *leaf, v *vector.Vector, sel vector.Bitmap) {
	var buf [needleWords]uint64
	offsets, data := v.Offsets(), v.Data()
	for at := 0; at < len(sel); at += needleWords {
		part := sel[at:min(at+needleWords, len(sel))]
		hits := vector.Bitmap(buf[:copy(buf[:], part)])
		if hits.Any() {
			kernel.FilterContains(hits, offsets[64*at:min(64*(at+needleWords)+1, len(offsets))], data, l.like.needle)
		}
		if !l.like.enough {
			eachSelected(hits, func(row int) bool { return l.like.match(v.BytesAt(64*at + row)) })
		}
		if l.not {
			part.AndNot(hits)
		} else {
			copy(part, hits)
		}
	}
}

// filterPoint handles the texts that equal s.
func filterPoint(sel vector.Bitmap, offsets []int32, data []byte, s string, not bool) {
	for i, w := range sel {
		for m := w; m != 0; m &= m - 1 {
			row := i<<6 + bits.TrailingZeros64(m)
			lo, hi := offsets[row], offsets[row+1]
			if (int(hi-lo) == len(s) && string(data[lo:hi]) == s) == not {
				w &^= m & -m
			}
		}
		sel[i] = w
	}
}

// matches reports whether a text passes the test, before negation.
func (l *leaf) matches(b []byte) bool {
	k := &l.run
	switch {
	case k.isPoint:
		return string(b) == k.point
	case l.test == inSpan:
		return string(b) >= k.loText && (k.hiOpen || string(b) < k.hiText)
	case l.test == inSet:
		_, ok := k.texts[string(b)]
		return ok
	}
	return l.like.match(b)
}

// hashSet is an open-addressed set of integers.
type hashSet struct {
	slots []int64
	free  int64 // marks an empty slot; not in the set
	shift uint
}

func newHashSet(keys []int64) *hashSet {
	logSize := bits.Len(uint(len(keys))) + 2 // at most a quarter full, for most probes miss
	h := &hashSet{slots: make([]int64, 1<<logSize), shift: uint(64 - logSize)}
	h.free = unusedKey(keys)
	for i := range h.slots {
		h.slots[i] = h.free
	}
	for _, x := range keys {
		i := h.home(x)
		for h.slots[i] != h.free {
			i = (i + 1) & (len(h.slots) - 1)
		}
		h.slots[i] = x
	}
	return h
}

// unusedKey returns a number that is not among the ascending keys.
func unusedKey(keys []int64) int64 {
	free := int64(0)
	for _, x := range keys {
		if x == free {
			free++
		}
	}
	return free
}

// home returns the first slot to look at, by Fibonacci hashing.
func (h *hashSet) home(x int64) int { return int(uint64(x) * 0x9e3779b97f4a7c15 >> h.shift) }

func (h *hashSet) has(x int64) bool {
	for i := h.home(x); ; i = (i + 1) & (len(h.slots) - 1) {
		switch h.slots[i] {
		case x:
			return x != h.free
		case h.free:
			return false
		}
	}
}
