package minikudu_test

import (
	"fmt"
	"testing"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
)

// sequence plays steps: I, U and D with a digit insert, update and delete that key, a
// slash ends a batch, F flushes, C compacts, R closes and opens, K kills and opens. The
// table is compared after each of them, and with kill also what a kill would leave.
func sequence(t *testing.T, steps string, batched, kill bool) {
	d, err := newDuring(func(*during) error { return nil })
	fatal(t, err)
	var queue []mop
	next := int64(0)
	for i := 0; i < len(steps); i++ {
		switch c := steps[i]; c {
		case 'I', 'U', 'D':
			i++
			next++
			k := int(steps[i] - '0')
			queue = append(queue, map[byte]mop{'I': ins("a", k, next), 'U': upd("a", k, next), 'D': del("a", k)}[c])
			continue
		case '/':
			if batched {
				err = d.story.commit(d.db, queue...)
			} else {
				err = d.commit(queue...)
			}
			queue = nil
		case 'F':
			err = d.flush()
		case 'C':
			err = d.compact()
		case 'R', 'K':
			err = d.reopen(c == 'K')
		default:
			continue
		}
		if err == nil {
			err = d.check()
		}
		if err == nil && kill {
			m := instant{"", d.mem.KillClone(), d.story.span(true)}
			err = m.recover(&minikudu.Options{})
		}
		if err != nil {
			t.Fatalf("%s, after %q: %v", steps, steps[:i+1], err)
		}
	}
	fatal(t, d.finish())
}

// reopen closes the store, or leaves it as a kill does, and opens it again.
func (d *during) reopen(kill bool) error {
	after := d.mem
	if kill {
		after = d.mem.KillClone()
	}
	if err := d.db.Close(); err != nil {
		return err
	}
	d.mem = after
	o := d.options()
	o.FS = d.mem
	var err error
	if d.db, err = minikudu.Open("store", o); err == nil {
		d.tab, err = d.db.Table("a")
	}
	return err
}

// Sequences that once broke stores of this kind, and the lives of a key that the rules
// of replay tell apart.
func TestItem77C28SequencesOfLives(t *testing.T) {
	for _, steps := range []string{
		"I0/F D0 I0/F C",
		"I0 D0/F I0 D0 I0/F C D0/C",
		"I0/F D0 I0 D0/F C",
		"I0/C D0/C I0 U0/F D0 I0/F U0/F U0 D0 I0 D0/F C",
		"I1/F R U1/F I0 D1 I1/F R C U1/",
		"I0/F D0/F R I1 I0/F D0 I0 U1/F R U1 D1/ R I1/F R C",
		"I0/F D0/ K I1 I0/F D0 I0 U1/F K U1 D1/ K I1/F K C",
		"I0/F D0/ I0/F C",
		"I0 D0/F I0 D0/F I0/F C",
		"I0/ D0/ I0/ K F D0/ K I0/ U0/ K C U0/ K D0/ K C",
		"I0 I1/F D0/ I0/ D0/ K D1/ I1/ F K C K",
		"I0/F U0/F U0/F U0/ K F K C U0/ K",
	} {
		for _, batched := range []bool{false, true} {
			sequence(t, steps, batched, true)
		}
	}
}

// A scan that began before rows were changed, flushed and compacted returns the rows as
// they were.
func TestC40Item72ScanAcrossFlushAndCompaction(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		name   string
		before func(*during) error
		during func(*during) error
	}{
		{"rows in memory", func(*during) error { return nil }, (*during).flush},
		{"rows on disk", (*during).flush, (*during).compact},
		{"changes in memory", func(d *during) error {
			if err := d.flush(); err != nil {
				return err
			}
			return changeAll(d, n, 2)
		}, (*during).flush},
		{"changes in files", func(d *during) error {
			if err := d.flush(); err != nil {
				return err
			}
			if err := changeAll(d, n, 2); err != nil {
				return err
			}
			return d.flush()
		}, (*during).compact},
	} {
		for _, order := range []minikudu.Order{minikudu.Unordered, minikudu.KeyOrder, minikudu.KeyReverse} {
			t.Run(fmt.Sprint(c.name, ", order ", order), func(t *testing.T) {
				d := &during{story: newStory(), mem: vfs.NewMem()}
				var err error
				d.db, err = minikudu.Open("store", &minikudu.Options{FS: d.mem, RowSetBytes: 16 << 10, Durability: minikudu.NoSync})
				fatal(t, err)
				defer mustClose(t, d.db)
				d.tab, err = d.db.CreateTable(ctx, "a", changeSpec())
				fatal(t, err)
				fatal(t, changeAll(d, n, 1))
				fatal(t, c.before(d))
				want, err := readImage(d.tab)
				fatal(t, err)
				got := map[int]cells{}
				for b, err := range d.tab.Scan(ctx, minikudu.Query{Order: order}) {
					fatal(t, err)
					for i := range b.Len() {
						row := b.Row(i)
						s, _ := row[2].(string)
						got[int(b.Column(0).Int32s()[i])] = cells{row[1].(int64), s}
					}
					if len(got) == b.Len() { // after the first batch
						if b.Len() == n {
							t.Fatal("the scan has one batch only")
						}
						fatal(t, changeAll(d, n, 3))
						fatal(t, d.during(c.during))
						fatal(t, deleteAll(d, n/2))
						fatal(t, d.during(c.during))
					}
				}
				if diff := difference(image{"a": got}, image{"a": want}); diff != "" {
					t.Fatalf("the scan saw later changes: %.300s", diff)
				}
				if now, err := readImage(d.tab); err != nil || len(now) != n/2 {
					t.Fatalf("%d rows at the end, %v", len(now), err)
				}
			})
		}
	}
}

// during runs the job and one more of the other kind.
func (d *during) during(job func(*during) error) error {
	if err := job(d); err != nil {
		return err
	}
	return d.compact()
}

// changeAll sets every row of [0, n) by upserts.
func changeAll(d *during, n int, value int64) error {
	var b minikudu.WriteBatch
	for k := range n {
		b.Upsert(d.tab, k, value, fmt.Sprint("v", value))
	}
	_, err := d.db.Commit(ctx, &b, nil)
	return err
}

func deleteAll(d *during, n int) error {
	var b minikudu.WriteBatch
	for k := range n {
		b.Add(d.tab, minikudu.OpDelete, map[string]any{"k": k})
	}
	_, err := d.db.Commit(ctx, &b, nil)
	return err
}
