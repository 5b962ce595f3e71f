package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/minikudu/minikudu/contrib/benchmarks/internal/show"
)

// chart is horizontal bars: for each category one bar of each series.
type chart struct {
	file, title, axis string
	categories        []string
	series            []string
	values            map[[2]int]spread // by category and series
}

const (
	barHeight   = 3.6 * vg.Millimeter
	legendLine  = 5 * vg.Millimeter
	chartBorder = 30 * vg.Millimeter // title and axis
)

func (c *chart) empty() bool { return len(c.values) == 0 }

// limits returns the ends of the axis and whether it is logarithmic.
func (c *chart) limits() (from, to float64, log bool) {
	from, to = math.Inf(1), 0
	for _, s := range c.values {
		from, to = min(from, s.least), max(to, s.most)
	}
	if to <= 0 {
		return 0, 1, false
	}
	if from <= 0 || to/from < 20 {
		return 0, 1.15 * to, false
	}
	decades := math.Log10(to / from)
	return math.Pow(10, math.Floor(math.Log10(from)-0.1)), to * math.Pow(10, 0.12*(decades+1)), true
}

// Plot draws the bars, a line from least to most, and the median as a number.
func (c *chart) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	style := p.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	slot := 0.84 / float64(len(c.series))
	for at, s := range c.values {
		center := c.center(at, slot)
		low, high := y(center-0.45*slot), y(center+0.45*slot)
		left, right := x(p.X.Min), x(max(s.median, p.X.Min))
		canvas.FillPolygon(show.Palette[at[1]%len(show.Palette)], canvas.ClipPolygonXY([]vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}}))
		line := draw.LineStyle{Color: color.Gray{60}, Width: vg.Points(1)}
		canvas.StrokeLine2(line, x(max(s.least, p.X.Min)), y(center), x(s.most), y(center))
		canvas.FillText(style, vg.Point{X: x(max(s.most, s.median)) + vg.Points(3), Y: y(center)}, show.Short(s.median))
	}
}

// center returns the middle of a bar. Those of a category lie close together around its
// name, whatever series it lacks.
func (c *chart) center(at [2]int, slot float64) float64 {
	before, bars := 0, 0
	for i := range c.series {
		if _, ok := c.values[[2]int{at[0], i}]; ok {
			bars++
			if i < at[1] {
				before++
			}
		}
	}
	return c.place(at[0]) + (float64(bars-1)/2-float64(before))*slot
}

// place returns the position of a category, the first at the top.
func (c *chart) place(category int) float64 { return float64(len(c.categories) - 1 - category) }

func (c *chart) plot() *plot.Plot {
	p := show.New(c.title)
	p.X.Label.Text = c.axis
	var log bool
	p.X.Min, p.X.Max, log = c.limits()
	p.X.Tick.Marker = plot.TickerFunc(show.Ticks)
	if log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(show.Decades)
		p.X.Label.Text += " (logarithmic)"
	}
	p.Y.Min, p.Y.Max = -0.5, float64(len(c.categories))-0.5
	p.Y.Tick.Length, p.Y.LineStyle.Width = 0, 0
	p.Y.Tick.Marker = plot.ConstantTicks(c.nameTicks())
	p.Add(c)
	return p
}

func (c *chart) nameTicks() (ticks []plot.Tick) {
	for i, name := range c.categories {
		ticks = append(ticks, plot.Tick{Value: c.place(i), Label: name})
	}
	return ticks
}

// draw draws chart and legend; the legend stands below, so that it covers nothing.
func (c *chart) draw(canvas vg.CanvasSizer) {
	dc := draw.New(canvas)
	legendHeight := c.legendHeight()
	if legendHeight > 0 {
		legend := plot.NewLegend()
		legend.Left, legend.Top = true, true
		legend.TextStyle.Font.Size = show.TextSize
		legend.ThumbnailWidth, legend.Padding = 4*vg.Millimeter, 1*vg.Millimeter
		for i, name := range c.series {
			legend.Add(name, show.Swatch{Color: show.Palette[i%len(show.Palette)]})
		}
		legend.Draw(draw.Crop(dc, 8*vg.Millimeter, 0, 0, legendHeight-dc.Max.Y+dc.Min.Y))
	}
	c.plot().Draw(draw.Crop(dc, 2*vg.Millimeter, -4*vg.Millimeter, legendHeight, -2*vg.Millimeter))
}

func (c *chart) legendHeight() vg.Length {
	if len(c.series) < 2 {
		return 0
	}
	return legendLine*vg.Length(len(c.series)) + 2*vg.Millimeter
}

// save writes the chart as SVG and as PNG.
func (c *chart) save(dir string) error {
	height := chartBorder + c.legendHeight() + barHeight*vg.Length(len(c.categories))*vg.Length(max(1.6, 1.15*float64(len(c.series))))
	return show.Save(dir, c.file, height, c.draw)
}

// addChart appends a chart unless it has no values.
func addChart(all []*chart, c *chart) []*chart {
	if c.empty() {
		return all
	}
	return append(all, c)
}

// crowded is the number of peers above which a chart of several series shows one codec
// of each family only.
const crowded = 14

// byPeer returns a chart of measures, one series each, over the peers that have any.
func byPeer(p *Plan, found spreads, w *Workload, file, title, axis string, measures []column) *chart {
	c := &chart{file: w.Name + "-" + file, title: w.Name + ": " + title, axis: axis, values: map[[2]int]spread{}}
	for _, m := range measures {
		c.series = append(c.series, m.title)
	}
	for _, info := range p.Peers {
		if len(measures) > 1 && len(p.Peers) > crowded && !info.Quick {
			continue
		}
		row := len(c.categories)
		shown := false
		for i, m := range measures {
			if s := found[spreadKey{w.Name, info.Name, m.measure}]; s.rounds > 0 {
				c.values[[2]int{row, i}], shown = s, true
			}
		}
		if shown {
			c.categories = append(c.categories, info.Name)
		}
	}
	return c
}

// ownChoice stands for the codecs that a peer chooses by itself.
const ownChoice = "own choice"

var codecs = []string{"none", "snappy", "lz4", "zlib", "zstd", ownChoice}

// byCodec returns a chart of one measure over the families of peers, a series for each
// codec, as in the published study of Avro, Parquet, HBase and Kudu.
func byCodec(p *Plan, found spreads, w *Workload, file, title, axis, measure string) *chart {
	c := &chart{file: "codecs-" + file, title: w.Name + ": " + title, axis: axis, values: map[[2]int]spread{}}
	families := map[string]int{}
	for _, codec := range codecs {
		if slices.ContainsFunc(p.Peers, func(i Info) bool { return i.Codec == codec }) {
			c.series = append(c.series, codec)
		}
	}
	for _, info := range p.Peers {
		s := found[spreadKey{w.Name, info.Name, measure}]
		series := slices.Index(c.series, info.Codec)
		if s.rounds == 0 || series < 0 {
			continue
		}
		if _, ok := families[info.Family]; !ok {
			families[info.Family] = len(c.categories)
			c.categories = append(c.categories, familyName(info.Family))
		}
		c.values[[2]int{families[info.Family], series}] = s
	}
	return c
}

func familyName(f string) string {
	switch f {
	case "parquet-go", "arrow-go":
		return fmt.Sprintf("Parquet (%s)", f)
	case "pebble":
		return "Pebble (for HBase)"
	case "avro":
		return "Avro"
	default:
		return f
	}
}

// charts returns all charts of a run.
func charts(p *Plan, found spreads) []*chart {
	var all []*chart
	for _, w := range p.Workloads {
		scans := make([]column, 0, len(w.Scans))
		for _, s := range w.Scans {
			scans = append(scans, column{"scan/" + s.Name + "/1", s.Name})
		}
		for _, c := range []*chart{
			byPeer(p, found, w, "ingest", "ingest, settling included", "rows/s", []column{{"ingest", "ingest"}}),
			byPeer(p, found, w, "size", "size on disk, settled", "bytes/row", []column{{"size", "size"}}),
			byPeer(p, found, w, "reads", "reads by key, 1 goroutine", "reads/s",
				[]column{{"get/1", "whole row"}, {"get3/1", "three columns"}, {"absent/1", "whole row, half of the keys absent"}}),
			byPeer(p, found, w, "scans", "scans, 1 thread", "rows/s", scans),
			byPeer(p, found, w, "ranges", "reads of a range of keys", "ranges/s", []column{{"range", "range"}}),
			byPeer(p, found, w, "updates", "updates of one column, settling included", "rows/s", []column{{"update/settled", "updates"}}),
		} {
			all = addChart(all, c)
		}
	}
	if len(p.Workloads) > 0 {
		w := p.Workloads[0]
		scan := w.Scans[0]
		for _, c := range []*chart{
			byCodec(p, found, w, "row-length", "row length by codec", "bytes/row", "size"),
			byCodec(p, found, w, "ingest", "ingest rate by codec, settling included", "rows/s", "ingest"),
			byCodec(p, found, w, "lookup", "random lookup rate by codec", "reads/s", "get/1"),
			byCodec(p, found, w, "scan", "scan rate by codec, "+scan.Name+", 1 thread", "rows/s", "scan/"+scan.Name+"/1"),
		} {
			all = addChart(all, c)
		}
	}
	return all
}
