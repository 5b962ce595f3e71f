package main

// narrow is rows of three numbers whose keys come in random order.
func narrow() *Workload {
	t := &Table{Name: "narrow", Key: 1, Columns: []Column{{Name: "id", Kind: Int}, {Name: "counter", Kind: Int}, {Name: "reading", Kind: Float}}}
	return &Workload{
		Name:  "narrow",
		About: "an integer key in random order, an integer below 1,000, a random double",
		Table: t, Rows: 1_000_000, Quick: 100_000,
		Scans: []Scan{
			{Name: "sum(reading)", Op: All, Sum: t.column("reading")},
			{Name: "sum(reading) where counter > 900", Column: t.column("counter"), Op: Above, Int: 900, Sum: t.column("reading")},
		},
		Update: t.column("counter"), Rescan: 1,
		Generate: func(rows int, _ string, emit func(Row) error) error {
			r := seeded(1)
			for _, id := range r.Perm(rows) {
				if err := emit(Row{{Int: 2 * int64(id)}, {Int: r.Int64N(1000)}, {Float: r.Float64()}}); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
