package main

import (
	"strconv"
	"testing"
)

// TestEventIndexShape checks what the workload claims to be.
func TestEventIndexShape(t *testing.T) {
	w := eventindex()
	kinds := map[Kind]int{}
	for _, c := range w.Table.Columns {
		kinds[c.Kind]++
	}
	if len(w.Table.Columns) != 56 || kinds[Text] != 32 || kinds[Int] != 21 || kinds[Float] != 3 {
		t.Errorf("%d columns, kinds %v", len(w.Table.Columns), kinds)
	}
	var bytes int
	const rows = 1000
	err := w.Generate(rows, "", func(row Row) error {
		for i, c := range row {
			switch w.Table.Columns[i].Kind {
			case Int:
				bytes += len(strconv.FormatInt(c.Int, 10))
			case Float:
				bytes += len(strconv.FormatFloat(c.Float, 'g', -1, 64))
			default:
				bytes += len(c.Text)
			}
			bytes++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if perRow := bytes / rows; perRow < 1600 || perRow > 2400 {
		t.Errorf("%d bytes a row as CSV", perRow)
	} else {
		t.Logf("%d bytes a row as CSV", perRow)
	}
}
