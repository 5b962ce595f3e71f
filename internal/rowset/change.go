package rowset

import "github.com/minikudu/minikudu/vector"

// ChangeKind is the net effect of a commit on a row.
type ChangeKind uint8

// The kinds of change. The numbers are on disk.
const (
	ChangePut ChangeKind = 1 // absent → live, full image; of a row already stored: a revival
	ChangeSet ChangeKind = 2 // live → live, some columns
	ChangeDel ChangeKind = 3 // live → absent
)

// Changes are effects of one kind that one commit has on rows of one rowset.
type Changes struct {
	Kind    ChangeKind
	Rows    []RowID          // distinct, in any order
	Columns []int            // schema columns set; none for ChangeDel
	Values  []*vector.Vector // one for each of Columns
	At      []int32          // cell of Values for each of Rows; nil: cell i belongs to Rows[i]
}

// Cell returns the index in Values of the cells of Rows[i].
func (c *Changes) Cell(i int) int {
	if c.At == nil {
		return i
	}
	return int(c.At[i])
}
