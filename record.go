package minikudu

import (
	"fmt"

	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// arrange turns a logged section into an effect on a table of the schema. Columns that
// the schema lacks are left out; those that a PUT lacks take their read default.
func arrange(s *schema.Schema, sec *record.Section) (*tablet.Logged, error) {
	all, err := arrangeColumns(s, sec)
	if err != nil {
		return nil, err
	}
	l := &tablet.Logged{Kind: rowset.ChangeKind(sec.Kind)}
	for i, v := range all {
		c := s.Column(i)
		switch {
		case v != nil:
		case i < s.NumKey(), sec.Kind == record.Put && c.ReadDefault.IsNull() && !c.Nullable:
			return nil, vfs.Corruptf("column %d is missing in a record", c.ID)
		case sec.Kind != record.Put:
			continue
		default:
			v = vector.New(c.Kind(), sec.Rows)
			if err := v.AppendConst(c.ReadDefault, sec.Rows); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.Name, err)
			}
		}
		l.Columns, l.Values = append(l.Columns, i), append(l.Values, v)
	}
	for _, h := range sec.Hints {
		l.RowSets, l.Rows = append(l.RowSets, rowset.ID(h.RowSet)), append(l.Rows, rowset.RowID(h.Row))
	}
	return l, nil
}

// arrangeColumns puts the columns of a section in the order of the schema.
func arrangeColumns(s *schema.Schema, sec *record.Section) ([]*vector.Vector, error) {
	out := make([]*vector.Vector, s.Len())
	for k, id := range sec.IDs {
		i := s.FindID(id)
		if i < 0 {
			continue
		}
		v, c := sec.Columns[k], s.Column(i)
		switch {
		case out[i] != nil:
			return nil, vfs.Corruptf("column %d stands twice in a record", id)
		case v.Kind() != c.Kind():
			return nil, vfs.Corruptf("column %d of kind %s in a record, want %s", id, v.Kind(), c.Kind())
		case v.NullCount() > 0 && !c.Nullable:
			return nil, vfs.Corruptf("column %d has nulls in a record", id)
		}
		out[i] = v
	}
	return out, nil
}
