package main

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

const (
	chartHeight = 90 * vg.Millimeter
	legendLine  = 5 * vg.Millimeter
)

// curve is a line of a chart.
type curve struct {
	name   string
	points plotter.XYs
	dashed bool
}

// chart is lines over the rows of a table, on a logarithmic axis.
type chart struct {
	file, title, axis string
	curves            []curve
}

func (c *chart) add(name string, dashed bool, points plotter.XYs) {
	if len(points) > 0 {
		c.curves = append(c.curves, curve{name, points, dashed})
	}
}

func (c *chart) plot() (*plot.Plot, error) {
	p := show.New(c.title)
	p.X.Label.Text, p.Y.Label.Text = "rows (logarithmic)", c.axis
	for i, l := range c.curves {
		line, err := plotter.NewLine(l.points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = show.Palette[i%len(show.Palette)], vg.Points(1.4)
		if l.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(show.Decades)
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(p.X.Min)+1e-9)), math.Pow(10, math.Ceil(math.Log10(p.X.Max)-1e-9))
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1.1*p.Y.Max, plot.TickerFunc(show.Ticks)
	return p, nil
}

// save draws the chart, and below it what its lines are.
func (c *chart) save(dir string) error {
	p, err := c.plot()
	if err != nil {
		return err
	}
	legend := legendLine*vg.Length(len(c.curves)) + 2*vg.Millimeter
	return show.Save(dir, c.file, chartHeight+legend, func(canvas vg.CanvasSizer) {
		dc := draw.New(canvas)
		l := plot.NewLegend()
		l.Left, l.Top, l.TextStyle.Font.Size = true, true, show.TextSize
		l.ThumbnailWidth, l.Padding = 4*vg.Millimeter, 1*vg.Millimeter
		for i := range c.curves {
			l.Add(c.curves[i].name, show.Swatch{Color: show.Palette[i%len(show.Palette)]})
		}
		l.Draw(draw.Crop(dc, 8*vg.Millimeter, 0, 0, legend-dc.Max.Y+dc.Min.Y))
		p.Draw(draw.Crop(dc, 2*vg.Millimeter, -6*vg.Millimeter, legend, -2*vg.Millimeter))
	})
}

// over returns a value over the samples of a result.
func (r *result) over(value func(*Sample) float64) (points plotter.XYs) {
	for _, s := range r.samples {
		points = append(points, plotter.XY{X: float64(s.Rows), Y: value(s)})
	}
	return points
}

// rates are those of the tenths.
func (r *result) rates() (points plotter.XYs) {
	for k := range int64(10) {
		if v := r.tenth(k); v > 0 {
			points = append(points, plotter.XY{X: float64(r.rows()) * (float64(k) + 1) / 10, Y: v})
		}
	}
	return points
}

// curveOf returns a value of the model from a size on to the largest that is shown.
func (m *Model) curveOf(from, to float64, value func(float64) float64) (points plotter.XYs) {
	for n := from; n <= to*1.0001; n *= math.Pow(10, 0.05) {
		points = append(points, plotter.XY{X: n, Y: value(n)})
	}
	return points
}

func (s *series) charts() []*chart {
	name := func(what, title, axis string) *chart {
		return &chart{file: fmt.Sprintf("scale-%s-%s", s.work.Name, what), title: s.work.Name + ": " + title, axis: axis}
	}
	rate := name("rate", "rate of ingest, of each tenth of a run", "rows/s")
	memory := name("memory", "memory while rows are loaded", "bytes")
	height := name("height", "rowsets that a key is looked for in, while rows are loaded", "height")
	writes := name("amplification", "bytes written for each byte of rowset files, while rows are loaded", "write amplification")
	for _, r := range s.results {
		run := rowsText(r.rows()) + " rows"
		rate.add(run, false, r.rates())
		memory.add(run+", resident", false, r.over(func(s *Sample) float64 { return float64(s.RSS) }))
		memory.add(run+", objects", false, r.over(func(s *Sample) float64 { return float64(s.Heap) }))
		height.add(run, false, r.over(func(s *Sample) float64 { return s.Height }))
		writes.add(run, false, r.over(func(s *Sample) float64 { return s.Amplification }))
	}
	if m := s.model; m != nil {
		from, to := m.Rows/10, float64(s.results[len(s.results)-1].rows())
		rate.add("model", true, m.curveOf(from, to, func(n float64) float64 { return 1e6 / m.rowMicros(n) }))
		height.add("model", true, m.curveOf(from, to, m.height))
	}
	return []*chart{rate, memory, height, writes}
}

func (s *series) writeCharts(w io.Writer, dir string) error {
	fmt.Fprintln(w)
	for _, c := range s.charts() {
		if err := c.save(dir); err != nil {
			return err
		}
		fmt.Fprintf(w, "![%s](%s.svg)\n", c.title, c.file)
	}
	return nil
}
