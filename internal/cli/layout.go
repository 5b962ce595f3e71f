package cli

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
)

func (s *session) layoutCommand() *cobra.Command {
	var svg string
	c := &cobra.Command{Use: "layout TABLE", Short: "Print where a table's files lie in its key space",
		Long: `Print a line for each file: the part of the key space that it covers, weighed by data,
its size, rows, the share of them that is live, changes in memory and in files, and its
first and last key. Where bars stand above each other a key must be looked for in several
files; the height is how many those are on average.`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withTable(reads, args[0], func(_ *minikudu.DB, t *minikudu.Table) error {
				sets, err := t.Layout(c.Context())
				if err != nil {
					return err
				}
				if svg != "" {
					if err := os.WriteFile(svg, drawLayout(t.Name(), sets), 0o644); err != nil {
						return failed(err)
					}
				}
				return s.printLayout(t, sets)
			})
		}}
	c.Flags().StringVar(&svg, "svg", "", "also draw the layout into a file")
	return c
}

// rowSetLine is a rowset as JSON.
type rowSetLine struct {
	ID           uint64   `json:"rowset"`
	MinKey       []string `json:"min_key"`
	MaxKey       []string `json:"max_key"`
	Start        float64  `json:"start"`
	End          float64  `json:"end"`
	Bytes        int64    `json:"bytes"`
	Rows         int64    `json:"rows"`
	LiveRows     int64    `json:"live_rows"`
	DeltaEntries int64    `json:"delta_entries"`
	DeltaBytes   int64    `json:"delta_bytes"`
	RedoFiles    int      `json:"redo_files"`
	RedoBytes    int64    `json:"redo_bytes"`
}

func (s *session) printLayout(t *minikudu.Table, sets []minikudu.RowSetInfo) error {
	if s.json {
		for _, r := range sets {
			if err := s.printJSON(rowSetLine{r.ID, r.MinKey, r.MaxKey, r.Start, r.End, r.Bytes, r.Rows, r.LiveRows,
				r.DeltaEntries, r.DeltaBytes, r.RedoFiles, r.RedoBytes}); err != nil {
				return err
			}
		}
		return nil
	}
	var bytes, live int64
	height := 0.0
	l := newListing(`rowset int64, keys string, bytes string, rows int64, live string, changes int64, "change files" int32, "first key" string, "last key" string`)
	for _, r := range sets {
		bytes, live, height = bytes+r.Bytes, live+r.LiveRows, height+r.End-r.Start
		l.add(int64(r.ID), keyBar(r.Start, r.End), humanize.IBytes(uint64(r.Bytes)), r.Rows, liveShare(&r), r.DeltaEntries, r.RedoFiles,
			strings.Join(r.MinKey, ", "), strings.Join(r.MaxKey, ", "))
	}
	fmt.Fprintf(s.out, "rowsets  %d\nheight   %.2f\nbytes    %d (%s)\nrows     %d (%d of them in memory)\n\n", len(sets), height,
		bytes, humanize.IBytes(uint64(bytes)), t.Rows(), t.Rows()-live)
	return s.print(format{"table"}, l)
}

func liveShare(r *minikudu.RowSetInfo) string {
	return fmt.Sprintf("%.1f %%", 100*float64(r.LiveRows)/float64(max(r.Rows, 1)))
}

const barWidth = 40

// keyBar draws the shares [start, end] of the key space, one cell at least.
func keyBar(start, end float64) string {
	from := min(int(start*barWidth), barWidth-1)
	to := min(max(int(math.Ceil(end*barWidth)), from+1), barWidth)
	return strings.Repeat(".", from) + strings.Repeat("#", to-from) + strings.Repeat(".", barWidth-to)
}

// Sizes of the drawing.
const (
	drawnWidth  = 1000
	drawnHeight = 26 // of a rowset
	drawnMargin = 20
	drawnTitle  = 40
	drawnFoot   = 30
	drawnLabel  = 60 // width from which on a rowset's size is written into it
)

// drawLayout draws rowsets as rectangles over the key space. Those that overlap stand
// above each other, so that the stack over a key is its height; dead rows fade a
// rectangle, a strip at its foot is as long as its share of changed rows.
func drawLayout(name string, sets []minikudu.RowSetInfo) []byte {
	lanes, count := stack(sets)
	var b bytes.Buffer
	total := drawnTitle + max(count, 1)*drawnHeight + drawnFoot
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		drawnWidth+2*drawnMargin, total)
	height := 0.0
	for i := range sets {
		height += sets[i].End - sets[i].Start
	}
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="14">%s: %d rowsets, height %.2f</text>`+"\n", drawnMargin, escape(name), len(sets), height)
	for i := range sets {
		drawRowSet(&b, &sets[i], float64(total-drawnFoot-(lanes[i]+1)*drawnHeight))
	}
	axis := total - drawnFoot
	fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%d" y2="%[3]d" stroke="#444"/>`+"\n", drawnMargin, drawnMargin+drawnWidth, axis)
	drawText(&b, drawnMargin, axis+16, "start", "first key")
	drawText(&b, drawnMargin+drawnWidth/2, axis+16, "middle", "a bar for each rowset over its part of the data; pale: deleted rows, red: changed rows")
	drawText(&b, drawnMargin+drawnWidth, axis+16, "end", "last key")
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func drawText(b *bytes.Buffer, x, y int, anchor, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" fill="#444">%s</text>`+"\n", x, y, anchor, escape(text))
}

func drawRowSet(b *bytes.Buffer, r *minikudu.RowSetInfo, y float64) {
	x, w := drawnMargin+r.Start*drawnWidth, max((r.End-r.Start)*drawnWidth, 1)
	live := float64(r.LiveRows) / float64(max(r.Rows, 1))
	changed := min(float64(r.DeltaEntries)/float64(max(r.Rows, 1)), 1)
	fmt.Fprintf(b, `<g><title>rowset %d: %s to %s, %s, %d rows, %s live, %d changes in memory, %d files of changes</title>`,
		r.ID, escape(strings.Join(r.MinKey, ", ")), escape(strings.Join(r.MaxKey, ", ")), humanize.IBytes(uint64(r.Bytes)), r.Rows,
		liveShare(r), r.DeltaEntries, r.RedoFiles)
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="#3b6ea5" fill-opacity="%.2f" stroke="#1d3a5f"/>`,
		x, y, w, drawnHeight-4, 0.2+0.8*live)
	if changed > 0 {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="4" fill="#c8502d"/>`, x, y+drawnHeight-8, max(w*changed, 1))
	}
	if w >= drawnLabel {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#fff">%s</text>`, x+5, y+15, humanize.IBytes(uint64(r.Bytes)))
	}
	b.WriteString("</g>\n")
}

// stack puts every rowset, in order of its first key, into the lowest lane that is free
// there.
func stack(sets []minikudu.RowSetInfo) (lanes []int, count int) {
	var ends []float64 // by lane
	for i := range sets {
		lane := 0
		for lane < len(ends) && ends[lane] > sets[i].Start {
			lane++
		}
		if lane == len(ends) {
			ends = append(ends, 0)
		}
		ends[lane] = sets[i].End
		lanes = append(lanes, lane)
	}
	return lanes, len(ends)
}

// escape returns text as XML holds it.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
