package memrowset

import (
	"context"

	"github.com/minikudu/minikudu/internal/rowset"
)

// Lookup sets out[i] for each of the keys which that is stored here. The caller's key
// locks keep the keys from being inserted meanwhile.
func (m *MemRowSet) Lookup(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) error {
	published := rowset.RowID(m.Rows())
	if published == 0 {
		return ctx.Err()
	}
	m.table.find(keys, which, published, func(key int32, row rowset.RowID) {
		out[key] = rowset.Found{RowSet: m, Row: row, Live: true, LastChange: m.time(int(row))}
	})
	return ctx.Err()
}
