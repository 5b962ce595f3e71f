package metrics

import (
	"bytes"
	"context"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/schema"
)

// fill sets every number within v to another value and returns how many there are.
func fill(v reflect.Value, next int64) int64 {
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			next = fill(v.Field(i), next)
		}
		return next
	}
	v.SetInt(next)
	return next + 1
}

// TestEveryMetric: each number of minikudu.Metrics is written once, under one name.
func TestEveryMetric(t *testing.T) {
	var m minikudu.Metrics
	n := fill(reflect.ValueOf(&m).Elem(), 1) - 1
	m.StallTime = 1500 * time.Millisecond
	var buf bytes.Buffer
	if err := Write(&buf, m); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^# HELP (minikudu_[a-z_]+) [^\n]+\.\n# TYPE (minikudu_[a-z_]+) (counter|gauge)\n(minikudu_[a-z_]+) ([0-9.]+)\n`)
	names, values := map[string]bool{}, map[string]bool{}
	text := buf.String()
	for text != "" {
		p := line.FindStringSubmatch(text)
		if p == nil || p[1] != p[2] || p[1] != p[4] || strings.HasSuffix(p[1], "_total") != (p[3] == "counter") {
			t.Fatalf("%.100s", text)
		}
		names[p[1]], values[p[5]] = true, true
		text = text[len(p[0]):]
	}
	if int64(len(names)) != n || int64(len(values)) != n || !values["1.5"] {
		t.Fatalf("%d names and %d values of %d numbers", len(names), len(values), n)
	}
}

func TestHandler(t *testing.T) {
	db, err := minikudu.OpenInMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	spec := minikudu.TableSpec{Columns: []schema.Column{{Name: "k", Type: schema.Int64}}, Key: []string{"k"}}
	table, err := db.CreateTable(context.Background(), "t", spec)
	if err != nil {
		t.Fatal(err)
	}
	var b minikudu.WriteBatch
	b.Insert(table, 1)
	b.Insert(table, 2)
	if _, err := db.Commit(context.Background(), &b, nil); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(db).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != ContentType || !strings.Contains(w.Body.String(), "\nminikudu_rows_written_total 2\n") {
		t.Fatal(w.Code, w.Body)
	}
}
