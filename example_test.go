package minikudu_test

import (
	"context"
	"fmt"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
)

func Example() {
	ctx := context.Background()
	db, _ := minikudu.OpenInMemory(nil) // or minikudu.Open("dir", nil)
	defer db.Close()
	cpu, _ := db.CreateTable(ctx, "cpu", minikudu.TableSpec{Key: []string{"host", "ts"}, Columns: []minikudu.Column{
		{Name: "host", Type: schema.String}, {Name: "ts", Type: schema.UnixtimeMicros}, {Name: "usage", Type: schema.Double}}})
	var b minikudu.WriteBatch
	b.Insert(cpu, "web1", time.Now(), 42.5)
	b.Insert(cpu, "web2", time.Now(), 97.1)
	_, err := db.Commit(ctx, &b, nil) // durable when it returns
	n, _ := cpu.Count(ctx, predicate.Gt("usage", 90))
	fmt.Println(n, err)
	// Output: 1 <nil>
}

func ExampleTable_Scan() {
	ctx := context.Background()
	db, _ := minikudu.OpenInMemory(nil)
	defer db.Close()
	t, _ := db.CreateTable(ctx, "squares", minikudu.TableSpec{Key: []string{"n"},
		Columns: []minikudu.Column{{Name: "n", Type: schema.Int64}, {Name: "square", Type: schema.Int64}}})
	var b minikudu.WriteBatch
	for n := range 10 {
		b.Insert(t, n, n*n)
	}
	if _, err := db.Commit(ctx, &b, nil); err != nil {
		fmt.Println(err)
	}
	for batch, err := range t.Scan(ctx, minikudu.Query{Where: predicate.Ge("square", 49), Order: minikudu.KeyReverse}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch.ColumnByName("n").Int64s(), batch.ColumnByName("square").Int64s())
	}
	// Output: [9 8 7] [81 64 49]
}

func ExampleScanAs() {
	type Point struct {
		Series string   `minikudu:"series"`
		T      int64    `minikudu:"t"`
		Value  *float64 `minikudu:"value"`
	}
	ctx := context.Background()
	db, _ := minikudu.OpenInMemory(nil)
	defer db.Close()
	t, _ := db.CreateTable(ctx, "points", minikudu.TableSpec{Key: []string{"series", "t"}, Columns: []minikudu.Column{
		{Name: "series", Type: schema.String}, {Name: "t", Type: schema.Int64}, {Name: "value", Type: schema.Double, Nullable: true}}})
	var b minikudu.WriteBatch
	v := 1.5
	if err := minikudu.InsertStructs(&b, t, Point{"a", 1, &v}, Point{"a", 2, nil}); err != nil {
		fmt.Println(err)
	}
	if _, err := db.Commit(ctx, &b, nil); err != nil {
		fmt.Println(err)
	}
	for p, err := range minikudu.ScanAs[Point](ctx, t, minikudu.Query{Order: minikudu.KeyOrder}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p.Series, p.T, p.Value != nil)
	}
	// Output:
	// a 1 true
	// a 2 false
}

// A state of the past, and what changed since.
func ExampleTable_Diff() {
	ctx := context.Background()
	db, _ := minikudu.OpenInMemory(nil)
	defer db.Close()
	stock, _ := db.CreateTable(ctx, "stock", minikudu.TableSpec{Key: []string{"item"},
		Columns: []minikudu.Column{{Name: "item", Type: schema.String}, {Name: "count", Type: schema.Int64}}})
	var b minikudu.WriteBatch
	b.Insert(stock, "apple", 3)
	b.Insert(stock, "pear", 5)
	monday, _ := db.Commit(ctx, &b, nil)

	b.Reset()
	b.Insert(stock, "plum", 7)
	b.Delete(stock, "pear")
	b.Add(stock, minikudu.OpUpdate, map[string]any{"item": "apple", "count": 2})
	if _, err := db.Commit(ctx, &b, nil); err != nil {
		fmt.Println(err)
	}
	old, _ := stock.Aggregate(ctx, minikudu.Query{AsOf: monday.Timestamp}, nil, minikudu.Sum("count"))
	fmt.Println("on Monday:", old.Column(0).Int64s()[0])
	for batch, err := range stock.Diff(ctx, minikudu.DiffQuery{From: monday.Timestamp}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for i := range batch.Len() {
			fmt.Println(batch.Row(i), "deleted:", batch.Deleted(i))
		}
	}
	// Output:
	// on Monday: 8
	// [apple 2] deleted: false
	// [pear 5] deleted: true
	// [plum 7] deleted: false
}
