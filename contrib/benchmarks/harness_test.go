package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongAnswerFails checks that the harness does not pass over what a peer says.
func TestWrongAnswerFails(t *testing.T) {
	w := narrow()
	path := filepath.Join(t.TempDir(), "rows")
	if err := w.generate(path, 1000, 300, ""); err != nil {
		t.Fatal(err)
	}
	truth, err := newTruth(w, path)
	if err != nil {
		t.Fatal(err)
	}
	defer truth.data.close()
	name := w.Scans[0].Name
	right := truth.answers[name]
	if right.Count != 1000 {
		t.Fatalf("%d rows counted", right.Count)
	}
	f := func(query string, a Answer, updated int, ok bool) {
		t.Helper()
		err := truth.check(Result{Answers: []Named{{query, a}}, Updated: updated})
		if ok != (err == nil) || !ok && !strings.Contains(err.Error(), "wrong answer") {
			t.Errorf("%s: %+v: %v", query, a, err)
		}
	}
	f(name, right, 0, true)
	f(name, Answer{right.Count, right.Sum * (1 + 1e-12)}, 0, true)
	f(name, Answer{right.Count + 1, right.Sum}, 0, false)
	f(name, Answer{right.Count, right.Sum + 1}, 0, false)

	rescan := w.Scans[w.Rescan].Name
	f("after "+rescan, truth.answers[rescan], 0, true)
	f("after "+rescan, truth.afterUpdates(200), 200, true)
	f("after "+rescan, truth.answers[rescan], 200, false)
}

// TestRowReadIsCompared checks that a wrong cell of a row read is found.
func TestRowReadIsCompared(t *testing.T) {
	w := narrow()
	path := filepath.Join(t.TempDir(), "rows")
	if err := w.generate(path, 100, 30, ""); err != nil {
		t.Fatal(err)
	}
	data, err := openDataset(path, w.Table)
	if err != nil {
		t.Fatal(err)
	}
	defer data.close()
	p := &phase{workload: w, data: data}
	all := first(len(w.Table.Columns))
	get := func(change int64, found bool) func(key, row Row) (bool, error) {
		return func(_, row Row) (bool, error) {
			copy(row, data.row(nil, 42, all))
			row[1].Int += change
			return found, nil
		}
	}
	f := func(want read, get func(key, row Row) (bool, error), ok bool) {
		t.Helper()
		if err := p.readOne(&want, all, make(Row, len(all)), get); ok != (err == nil) {
			t.Errorf("%+v: %v", want, err)
		}
	}
	present, absent := read{data.key(42), 42}, read{data.key(42), -1}
	f(present, get(0, true), true)
	f(present, get(1, true), false)
	f(present, get(0, false), false)
	f(absent, get(0, false), true)
	f(absent, get(0, true), false)
}

func TestSummaries(t *testing.T) {
	lines := []Line{}
	for _, v := range []float64{5, 1, 3, 9} {
		lines = append(lines, Line{Workload: "w", Peer: "p", Measure: Measure{"m", "rows/s", v}})
	}
	if s := summarize(lines)[spreadKey{"w", "p", "m"}]; s.median != 4 || s.least != 1 || s.most != 9 {
		t.Errorf("%+v", s)
	}
}

// TestKeysSort checks that encoded keys order like the columns they are made of.
func TestKeysSort(t *testing.T) {
	table := cpu().Table
	keys := []Row{{{Text: ""}, {Int: 1}}, {{Text: "a"}, {Int: -5}}, {{Text: "a"}, {Int: 0}}, {{Text: "a"}, {Int: 7}}, {{Text: "ab"}, {Int: -9}}, {{Text: "b"}, {Int: 0}}}
	for i := 1; i < len(keys); i++ {
		a, b := appendKey(nil, table, keys[i-1]), appendKey(nil, table, keys[i])
		if string(a) >= string(b) || compareKeys(table, keys[i-1], keys[i]) >= 0 {
			t.Errorf("%v does not sort before %v", keys[i-1], keys[i])
		}
	}
}
