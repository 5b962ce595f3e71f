package minikudu

import (
	"fmt"

	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
	"github.com/minikudu/minikudu/vfs"
)

// arrange puts the columns of a logged section in the order of the schema. Columns
// that the schema lacks are left out, those that the section lacks take their read
// default.
func arrange(s *schema.Schema, sec *record.Section) ([]*vector.Vector, error) {
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
	for i := range out {
		if out[i] != nil {
			continue
		}
		c := s.Column(i)
		if i < s.NumKey() || c.ReadDefault.IsNull() && !c.Nullable {
			return nil, vfs.Corruptf("column %d is missing in a record", c.ID)
		}
		out[i] = vector.New(c.Kind(), sec.Rows)
		if err := out[i].AppendConst(c.ReadDefault, sec.Rows); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	return out, nil
}
