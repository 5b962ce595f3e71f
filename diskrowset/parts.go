package diskrowset

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
)

// part is a part of a file that is made in memory beside others, and then written. All
// parts together are no larger than a file may be.
type part struct {
	of       string // for messages
	make     func(p *part) error
	w        *writer // of the goroutine that makes it
	buf      chunks
	sections []rowset.Section // offsets from the beginning of the part
	size     int64            // noted last
	made     chan struct{}    // closed when it is, or has failed
}

// section notes that the bytes since offset at of the part are a section.
func (p *part) section(file rowset.FileNum, kind rowset.SectionKind, column schema.ColumnID, at int64) {
	p.sections = append(p.sections, rowset.Section{File: file, Offset: at, Length: int64(p.buf.Len()) - at, Kind: kind, Column: column})
}

// makeAll makes the parts, several at a time, and calls use for one after the other in
// order. The first failure ends it.
func (w *fileWriter) makeAll(parts []*part, use func(k int) error) error {
	ctx, cancel := context.WithCancelCause(w.ctx)
	defer cancel(nil)
	for _, p := range parts {
		p.made = make(chan struct{})
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for i := range min(max(1, w.o.Workers()), len(parts)) {
		own := &writer{ctx: ctx, src: w.src.Fork(), o: w.o}
		workers.Go(func() {
			for i < max(1, w.o.Workers()) {
				k := int(next.Add(1) - 1)
				if k >= len(parts) {
					return
				}
				p := parts[k]
				p.w = own
				if err := p.make(p); err != nil {
					cancel(fmt.Errorf("writing %s: %w", p.of, err))
				}
				close(p.made)
			}
		})
	}
	for k, p := range parts {
		<-p.made
		if ctx.Err() != nil {
			break
		}
		if err := use(k); err != nil {
			cancel(err)
			break
		}
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
