package bench

import (
	"context"
	"math/rand/v2"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vector"
)

// batch is rows that one call writes, or whose keys are looked up.
type batch struct {
	columns []*vector.Vector
	rows    int
	keys    [][]any // of look-ups, in place of columns
}

// deal gives row i of an operation to thread i modulo threads. order lists the rows of
// this round, of which the first is row number first of the operation; what a thread
// gets is cut into batches.
func deal(columns []*vector.Vector, order []int32, first int64, threads, batchRows int) ([][]batch, error) {
	hands := make([][]int32, threads)
	for i, row := range order {
		t := int((first + int64(i)) % int64(threads))
		hands[t] = append(hands[t], row)
	}
	shares := make([][]batch, threads)
	for t, hand := range hands {
		for from := 0; from < len(hand); from += batchRows {
			b, err := gather(columns, hand[from:min(from+batchRows, len(hand))])
			if err != nil {
				return nil, err
			}
			shares[t] = append(shares[t], b)
		}
	}
	return shares, nil
}

// gather copies rows.
func gather(columns []*vector.Vector, rows []int32) (batch, error) {
	b := batch{columns: make([]*vector.Vector, len(columns)), rows: len(rows)}
	for i, c := range columns {
		b.columns[i] = vector.New(c.Kind(), len(rows))
		if err := b.columns[i].AppendRows(c, rows); err != nil {
			return batch{}, err
		}
	}
	return b, nil
}

// boxKeys turns columns of keys into what Get takes.
func (b *batch) boxKeys() {
	b.keys = make([][]any, b.rows)
	for i := range b.keys {
		for _, c := range b.columns {
			b.keys[i] = append(b.keys[i], c.Value(i))
		}
	}
	b.columns = nil
}

// pick draws n different rows that are there, all if there are no more, and returns
// their keys in the order of a scan.
func pick(ctx context.Context, t *minikudu.Table, w *Workload, r *rand.Rand, n int64) ([]*vector.Vector, int, error) {
	keys := w.vectors(len(w.Spec.Key), int(min(n, t.Rows())))
	left := t.Rows()
	for b, err := range t.Scan(ctx, minikudu.Query{Columns: w.Spec.Key}) {
		if err != nil {
			return nil, 0, err
		}
		var chosen []int32
		for i := range b.Len() {
			if n > 0 && r.Int64N(max(left, 1)) < n {
				chosen = append(chosen, int32(i))
				n--
			}
			left--
		}
		for i, k := range keys {
			if err := k.AppendRows(b.Column(i), chosen); err != nil {
				return nil, 0, err
			}
		}
		if n == 0 {
			break
		}
	}
	return keys, keys[0].Len(), nil
}

func inOrder(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

func shuffled(r *rand.Rand, n int) []int32 {
	order := inOrder(n)
	r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// again repeats rows until there are n, unless there is none.
func again(order []int32, n int) []int32 {
	for found := len(order); found > 0 && len(order) < n; {
		order = append(order, order[:min(found, n-len(order))]...)
	}
	return order
}
