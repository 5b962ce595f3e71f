package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/minikudu/minikudu/contrib/parquet"
	"github.com/minikudu/minikudu/vector"
)

// flights is real data: flights in the United States of 2001.
func flights() *Workload {
	t := &Table{Name: "flights", Key: 4, Columns: []Column{{Name: "date", Kind: Int}, {Name: "origin", Kind: Text, Words: true},
		{Name: "destination", Kind: Text, Words: true}, {Name: "seq", Kind: Int}, {Name: "delay", Kind: Int}, {Name: "distance", Kind: Int}}}
	return &Workload{
		Name:  "flights",
		About: "flights in the United States of 2001, in order of departure; key (date, origin, destination, seq), where seq tells rows apart that share the rest",
		Table: t, Rows: 3_000_000, Quick: 100_000,
		Scans: []Scan{
			{Name: "sum(delay) where distance > 1000", Column: t.column("distance"), Op: Above, Int: 1000, Sum: t.column("delay")},
			{Name: "sum(delay) where origin = 'ORD'", Column: t.column("origin"), Op: Equal, Text: "ORD", Sum: t.column("delay")},
			{Name: "count where destination like '%A%'", Column: t.column("destination"), Op: Contains, Text: "A", Sum: -1},
		},
		Three: t.columns("origin", "delay", "distance"), Update: t.column("delay"), Rescan: 0,
		Generate: generateFlights, Source: true,
	}
}

// flight is a row of the source.
type flight struct {
	date                int64 // microseconds
	origin, destination string
	delay, distance     int64
}

var errEnough = errors.New("enough rows")

func generateFlights(rows int, source string, emit func(Row) error) error {
	read := readFlightsParquet
	if filepath.Ext(source) == ".csv" {
		read = readFlightsCSV
	}
	type trip struct {
		date                int64
		origin, destination string
	}
	seen := map[trip]int64{}
	err := read(source, func(f flight) error {
		if rows--; rows < 0 {
			return errEnough
		}
		key := trip{f.date, f.origin, f.destination}
		seq := seen[key]
		seen[key]++
		return emit(Row{{Int: f.date}, {Text: f.origin}, {Text: f.destination}, {Int: 2 * seq}, {Int: f.delay}, {Int: f.distance}})
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func readFlightsParquet(path string, emit func(flight) error) error {
	r, err := parquet.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		b, err := r.Next(ctx, 10_000)
		if err != nil {
			return err
		}
		if b == nil {
			return nil
		}
		if err := flightsOf(b, emit); err != nil {
			return err
		}
	}
}

func flightsOf(b *vector.Batch, emit func(flight) error) error {
	row := make([]any, 0, 5)
	columns := []int{b.Find("date"), b.Find("origin"), b.Find("destination"), b.Find("delay"), b.Find("distance")}
	for i := range b.Len() {
		row = b.AppendRow(row[:0], i)
		date, ok1 := row[columns[0]].(time.Time)
		origin, ok2 := row[columns[1]].(string)
		destination, ok3 := row[columns[2]].(string)
		delay, ok4 := row[columns[3]].(int64)
		distance, ok5 := row[columns[4]].(int64)
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
			return fmt.Errorf("flights: row %v has other types than expected", row)
		}
		if err := emit(flight{date.UnixMicro(), origin, destination, delay, distance}); err != nil {
			return err
		}
	}
	return nil
}

// readFlightsCSV reads a file with the header date,origin,destination,delay,distance.
func readFlightsCSV(path string, emit func(flight) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	if _, err := r.Read(); err != nil {
		return err
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		date, err1 := time.Parse(time.RFC3339, row[0])
		delay, err2 := strconv.ParseInt(row[3], 10, 64)
		distance, err3 := strconv.ParseInt(row[4], 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		if err := emit(flight{date.UnixMicro(), row[1], row[2], delay, distance}); err != nil {
			return err
		}
	}
}
