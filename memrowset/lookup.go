package memrowset

import (
	"context"

	"github.com/minikudu/minikudu/internal/rowset"
)

// Lookup sets out[i] for each of the keys which that is stored here; a ghost does not
// replace what another store answered. The caller's key locks keep the keys from being
// changed meanwhile.
func (m *MemRowSet) Lookup(ctx context.Context, keys *rowset.Keys, which []int32, out []rowset.Found) error {
	published := rowset.RowID(m.Rows())
	if published == 0 {
		return ctx.Err()
	}
	m.table.find(keys, which, published, func(key int32, row rowset.RowID) {
		f := rowset.Found{RowSet: m, Row: row, Live: true, LastChange: m.time(int(row))}
		if kind, ts, changed := m.deltas.Newest(row); changed {
			f.Live, f.LastChange = kind != rowset.ChangeDel, ts
		}
		if f.Live || out[key].RowSet == nil {
			out[key] = f
		}
	})
	return ctx.Err()
}
