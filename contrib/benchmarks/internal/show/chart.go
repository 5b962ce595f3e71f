package show

import (
	"errors"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Palette can be told apart with any eyes (Okabe and Ito).
var Palette = []color.RGBA{{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {213, 94, 0, 255}, {86, 180, 233, 255}, {204, 121, 167, 255}}

// Sizes of all charts.
const (
	Width    = 210 * vg.Millimeter
	TextSize = 3.2 * vg.Millimeter
)

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// New returns a plot with the title and the fonts of all charts.
func New(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size, p.Title.Padding = 1.3*TextSize, vg.Points(6)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = TextSize, TextSize
	}
	return p
}

// Ticks are ticks of a linear axis, with suffixes.
func Ticks(from, to float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(from, to)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = Trim(Short(ticks[i].Value))
		}
	}
	return ticks
}

// Decades are ticks of a logarithmic axis.
func Decades(from, to float64) (ticks []plot.Tick) {
	for v := math.Pow(10, math.Ceil(math.Log10(from)-1e-9)); v <= to; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: Trim(Short(v))})
	}
	return ticks
}

// Save draws a chart of a height to NAME.svg and NAME.png.
func Save(dir, name string, height vg.Length, drawOn func(vg.CanvasSizer)) error {
	svg := vgsvg.New(Width, height)
	png := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(Width, height), vgimg.UseDPI(110))}
	drawOn(svg)
	drawOn(png)
	return errors.Join(write(filepath.Join(dir, name+".svg"), svg), write(filepath.Join(dir, name+".png"), png))
}

func write(path string, c vg.CanvasWriterTo) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(f)
	return errors.Join(err, f.Close())
}

// Swatch is a square of a color in a legend.
type Swatch struct{ Color color.Color }

// Thumbnail fills the canvas.
func (s Swatch) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(s.Color, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}
