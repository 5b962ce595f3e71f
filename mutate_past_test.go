package minikudu_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/minikudu/minikudu"
)

// pinned is a pin, and the chapter that it keeps; -1 where that is not known.
type pinned struct {
	at      minikudu.Timestamp
	chapter int
}

// pin pins the present. What is earlier cannot be pinned beside a table without history.
func (s *story) pin(db *minikudu.DB, name string) error {
	at, err := db.Pin(ctx, name, 0)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[name] = pinned{at, s.acked}
	return nil
}

func (s *story) unpin(db *minikudu.DB, name string) error {
	s.mu.Lock()
	delete(s.pins, name)
	s.mu.Unlock()
	return db.Unpin(ctx, name)
}

// hold notes that a snapshot is in use.
func (s *story) hold(at minikudu.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, at)
}

// release ends hold.
func (s *story) release(at minikudu.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.held, at)
	s.held = slices.Delete(s.held, i, i+1)
}

// acknowledged returns the indexes of the chapters whose time is known.
func acknowledged(chapters []chapter) (known []int) {
	for i := range chapters {
		if chapters[i].at > 0 {
			known = append(known, i)
		}
	}
	return known
}

// mark returns the time from which on the table's past can be read.
func (s *story) mark(db *minikudu.DB, tab *minikudu.Table) (minikudu.Timestamp, error) {
	now, err := db.Snapshot()
	if err != nil {
		return 0, err
	}
	now.Close()
	mark := min(now.Timestamp(), minikudu.TimestampAt(s.time().Add(-tab.History())))
	for _, p := range db.Pins() {
		mark = min(mark, p.Timestamp)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.held {
		mark = min(mark, at)
	}
	return mark, nil
}

// checkPast compares the past of the tables that keep it, up to a chapter, with a sample
// of what it was: states in a random order, those that are pinned, and one difference.
func (p span) checkPast(db *minikudu.DB, last int) error {
	chapters := p.until()[:last+1]
	known := acknowledged(chapters)
	for name, pin := range p.pins {
		if err := p.checkPin(db, chapters, pin); err != nil {
			return fmt.Errorf("pin %s: %w", name, err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		tab, err := db.Table(name)
		if err != nil || tab.History() == 0 || len(known) == 0 {
			continue
		}
		mark, err := p.story.mark(db, tab)
		if err != nil {
			return err
		}
		for range 3 {
			if err := checkChapter(tab, &chapters[known[rand.IntN(len(known))]], mark); err != nil {
				return err
			}
		}
		readable := slices.DeleteFunc(slices.Clone(known), func(i int) bool { return chapters[i].at < mark })
		if len(readable) == 0 {
			continue
		}
		from := rand.IntN(len(readable))
		to := from + rand.IntN(len(readable)-from)
		if err := checkChapters(tab, chapters, readable[from], readable[to]); err != nil {
			return err
		}
	}
	return nil
}

// checkPin compares the state that a pin keeps, in all tables, with the chapter. A commit
// may have been lost that is older than the pin.
func (p span) checkPin(db *minikudu.DB, chapters []chapter, pin pinned) error {
	if pin.chapter < 0 {
		return nil
	}
	c := chapters[min(pin.chapter, len(chapters)-1)]
	c.at = pin.at
	for _, tab := range db.Tables() {
		if err := checkChapter(tab, &c, pin.at); err != nil {
			return err
		}
	}
	return nil
}

// checkChapter compares the table as of the chapter's time with it, or requires that it is
// too old if it lies before the mark.
func checkChapter(tab *minikudu.Table, c *chapter, mark minikudu.Timestamp) error {
	got, order, k := map[int]cells{}, minikudu.Order(rand.IntN(3)), rand.IntN(40)
	var keys []int
	var err error
	for b, e := range tab.Scan(ctx, minikudu.Query{AsOf: c.at, Order: order}) {
		if err = e; err != nil {
			break
		}
		for i := range b.Len() {
			key, row := rowCells(b, i)
			got[key], keys = row, append(keys, key)
		}
	}
	row, gerr := tab.GetAsOf(ctx, c.at, k)
	if c.at < mark {
		if !errors.Is(err, minikudu.ErrHistoryExpired) || !errors.Is(gerr, minikudu.ErrHistoryExpired) {
			return fmt.Errorf("table %s as of %d, before %d: %w, get: %w", tab.Name(), c.at, mark, err, gerr)
		}
		return nil
	}
	if err != nil {
		return err
	}
	want, live := c.rows[tab.Name()][k]
	if live != (gerr == nil) || live && row.Value("n") != want.n || !live && !errors.Is(gerr, minikudu.ErrNotFound) {
		return fmt.Errorf("table %s as of %d: get %d: %v, %w; want %v, %v", tab.Name(), c.at, k, row, gerr, want, live)
	}
	if order == minikudu.KeyReverse {
		slices.Reverse(keys)
	}
	if len(keys) != len(got) || order != minikudu.Unordered && !slices.IsSorted(keys) {
		return fmt.Errorf("table %s as of %d: order %d, keys %v", tab.Name(), c.at, order, keys)
	}
	if d := difference(image{tab.Name(): got}, c.rows); d != "" {
		return fmt.Errorf("as of %d, order %d: %s", c.at, order, d)
	}
	return nil
}

// rowCells returns the key and the cells of a row of a batch.
func rowCells(b *minikudu.Batch, i int) (int, cells) {
	row := b.Row(i)
	s, _ := row[2].(string)
	return int(b.Column(0).Int32s()[i]), cells{row[1].(int64), s}
}

// checkChapters compares the table's changes from one chapter to another with the story.
func checkChapters(tab *minikudu.Table, chapters []chapter, from, to int) error {
	want, got := changesBetween(tab.Name(), chapters, from, to), map[int]string{}
	for b, err := range tab.Diff(ctx, minikudu.DiffQuery{From: chapters[from].at, To: chapters[to].at}) {
		if err != nil {
			return fmt.Errorf("diff (%d, %d]: %w", chapters[from].at, chapters[to].at, err)
		}
		for i := range b.Len() {
			k, row := rowCells(b.Batch, i)
			if _, twice := got[k]; twice {
				return fmt.Errorf("diff: key %d is there twice", k)
			}
			got[k] = fmt.Sprint(b.Deleted(i), row)
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("table %s, diff (%d, %d]: %v, want %v", tab.Name(), chapters[from].at, chapters[to].at, got, want)
	}
	return nil
}

// changesBetween returns what a diff shows, by key: whether the row is deleted, and its
// cells at the end, or before it was first deleted.
func changesBetween(tab string, chapters []chapter, from, to int) map[int]string {
	out := map[int]string{}
	show := func(k int) {
		row, live := chapters[to].rows[tab][k]
		if live {
			out[k] = fmt.Sprint(false, row)
			return
		}
		if _, was := chapters[from].rows[tab][k]; !was {
			return
		}
		for i := from + 1; ; i++ {
			if _, still := chapters[i].rows[tab][k]; !still {
				out[k] = fmt.Sprint(true, chapters[i-1].rows[tab][k])
				return
			}
		}
	}
	for _, c := range chapters[from+1 : to+1] {
		for k := range c.touched[tab] {
			show(k)
		}
	}
	return out
}
