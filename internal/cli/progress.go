package cli

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/vbauerster/cupwriter"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on standard error, nil where that is no terminal.
type progress struct {
	bars *mpb.Progress
	quit chan struct{}
	done chan struct{}
}

// progressBar shows how far state has come until stop is called.
func (s *session) progressBar(name string, state func() (done, total int64)) *progress {
	if s.json || !cupwriter.New(s.app.Stderr, false).IsTerminal() {
		return nil
	}
	_, total := state()
	p := &progress{bars: mpb.New(mpb.WithOutput(s.app.Stderr), mpb.WithWidth(60)), quit: make(chan struct{}), done: make(chan struct{})}
	bar := p.bars.AddBar(total, mpb.BarRemoveOnComplete(), mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return amount(s.Current, total) }), decor.Elapsed(decor.ET_STYLE_GO)))
	go func() {
		defer close(p.done)
		defer bar.Abort(true)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.quit:
				return
			case <-tick.C:
				now, _ := state()
				if total > 0 {
					now = min(now, total-1) // it completes only when stopped
				}
				bar.SetCurrent(now)
			}
		}
	}()
	return p
}

// amount says how much is done: a share where there is a total.
func amount(done, total int64) string {
	if total <= 0 {
		return humanize.Comma(done) + " rows "
	}
	return fmt.Sprintf("%d %% ", 100*done/total)
}

// stop removes the bar.
func (p *progress) stop() {
	if p == nil {
		return
	}
	close(p.quit)
	<-p.done
	p.bars.Wait()
}
