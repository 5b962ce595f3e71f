package cli

import (
	"context"
	_ "embed" // the sample
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
)

//go:embed sample/seattle-weather.csv
var sample []byte

func (s *session) demoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Show what it does, in a temporary directory", Args: args(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return s.demo(c.Context()) }}
}

// demo runs a few commands in a temporary directory, as a user would type them.
type demo struct {
	*session
	ctx context.Context
	db  string
	err error // the first; later steps do nothing
}

func (s *session) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "minikudu-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	csv := filepath.Join(dir, "weather.csv")
	if err := os.WriteFile(csv, sample, 0o644); err != nil {
		return err
	}
	d := &demo{session: s, ctx: ctx, db: filepath.Join(dir, "db")}
	d.tell("Hourly weather normals of Seattle in 2010 (NOAA, public domain): %s of CSV, in a\ntemporary directory. Every line that begins with $ can be typed as it stands.",
		humanize.Bytes(uint64(len(sample))))
	d.tell("Put the rows into a new table. They are durable when the command ends.")
	d.run(csv, "import", "weather", "weather.csv", "--key", "date")
	d.tell("So far they are in the log. Write them to column files, after which the log is empty.")
	d.run(csv, "flush", "weather")
	d.run(csv, "stats", "weather")
	d.tell("Each command opens the store anew. All eleven months, aggregated inside the scan:")
	d.run(csv, "scan", "weather", "--agg", "count(*), min(temperature), avg(temperature), max(temperature)")
	d.tell("The five warmest hours:")
	d.run(csv, "scan", "weather", "--order-by", "temperature desc, date", "--limit", "5")
	d.tell("The evening of the fourth of July, a range of keys:")
	d.run(csv, "scan", "weather", "--where", "date >= '2010-07-04 20:00:00' and date < '2010-07-05'", "--key-order")
	d.tell("How cold is a windy hour?")
	d.run(csv, "scan", "weather", "--where", "wind > 4.2", "--agg", "count(*), avg(temperature)", "--group-by", "wind")
	d.chart()
	d.tell("One row by its key:")
	d.run(csv, "get", "weather", "2010-11-30T23:00:00Z")
	d.run(csv, "verify")
	d.tell("The directory is removed again. minikudu --help lists all commands.")
	return d.err
}

// tell prints a paragraph.
func (d *demo) tell(format string, args ...any) {
	if d.err == nil && !d.json {
		_, d.err = fmt.Fprintf(d.out, "\n"+format+"\n", args...)
	}
}

// run runs a command over the store of the demo and shows it.
func (d *demo) run(csv string, args ...string) {
	if d.err != nil {
		return
	}
	if !d.json {
		fmt.Fprintf(d.out, "\n  $ minikudu %s\n\n", shellLine(args))
	}
	global := []string{"--db", d.db, fmt.Sprintf("--json=%t", d.json)}
	for i, a := range args {
		if a == filepath.Base(csv) {
			args[i] = csv
		}
	}
	app := &App{Stdin: d.app.Stdin, Stdout: &indenter{dst: d.out, on: !d.json}, Stderr: d.app.Stderr}
	if code := app.Run(d.ctx, append(global, args...)); code != exitDone {
		d.err = &exitError{code: code}
	}
}

// shellLine returns the arguments as a shell reads them.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		switch {
		case strings.Contains(a, "'"):
			quoted[i] = `"` + a + `"`
		case strings.ContainsAny(a, " *()<>&|"):
			quoted[i] = "'" + a + "'"
		default:
			quoted[i] = a
		}
	}
	return strings.Join(quoted, " ")
}

// indenter sets lines in by two spaces.
type indenter struct {
	dst    interface{ Write([]byte) (int, error) }
	on     bool
	inLine bool
}

func (w *indenter) Write(p []byte) (int, error) {
	if !w.on {
		return w.dst.Write(p)
	}
	var b []byte
	for _, c := range p {
		if !w.inLine && c != '\n' {
			b = append(b, "  "...)
		}
		w.inLine = c != '\n'
		b = append(b, c)
	}
	_, err := w.dst.Write(b)
	return len(p), err
}

// chart draws the temperature of a week, read by a scan over a range of keys.
func (d *demo) chart() {
	if d.err != nil || d.json {
		return
	}
	d.tell("The temperature of the first week of July, in °C:\n")
	week := &session{app: d.app, dir: d.db, memory: d.memory, sync: d.sync}
	var line []float64
	d.err = week.withTable(reads, "weather", func(_ *minikudu.DB, t *minikudu.Table) error {
		where := predicate.And(predicate.Ge("date", "2010-07-01"), predicate.Lt("date", "2010-07-08"))
		q := minikudu.Query{Columns: []string{"temperature"}, Where: where, Order: minikudu.KeyOrder}
		return eachBatch(d.ctx, t, q, func(b *minikudu.Batch) error {
			line = append(line, b.Column(0).Float64s()...)
			return nil
		})
	})
	if d.err == nil {
		fmt.Fprintln(d.out, asciigraph.Plot(line, asciigraph.Height(8), asciigraph.Width(72), asciigraph.Offset(4), asciigraph.Precision(0)))
	}
}
