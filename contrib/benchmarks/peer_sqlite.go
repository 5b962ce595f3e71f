package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	_ "github.com/mattn/go-sqlite3"
)

func sqlitePeers() []Info {
	peer := func(name, settings string, rowid bool) Info {
		return Info{Name: name, Family: "sqlite", Keyed: true, Rows: true, Quick: !rowid,
			Settings: "WAL, synchronous=FULL, cache of the budget, " + settings,
			New:      func() Peer { return &sqlitePeer{rowid: rowid} }}
	}
	return []Info{peer("sqlite", "WITHOUT ROWID", false), peer("sqlite-rowid", "rowid table with an index of the key", true)}
}

// sqlitePeer is SQLite's C library.
type sqlitePeer struct {
	sqlStore
	rowid bool
}

func (p *sqlitePeer) Open(s *Setup) error {
	db, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?_journal_mode=WAL&_synchronous=FULL&_cache_size=-%d&_cslike=1",
		filepath.Join(s.Dir, "store.sqlite"), s.Cache>>10))
	if err != nil {
		return err
	}
	p.start(s, db)
	if !s.Create {
		return db.Ping()
	}
	suffix := " WITHOUT ROWID"
	if p.rowid {
		suffix = ""
	}
	return p.create(map[Kind]string{Int: "INTEGER", Float: "REAL", Text: "TEXT"}, true, suffix)
}

func (p *sqlitePeer) Load(b *Batch) error {
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(p.table.Columns)), ", ")
	s, err := p.statement("INSERT INTO " + p.table.Name + " VALUES (" + marks + ")")
	if err != nil {
		return err
	}
	return p.transaction(s, func(s *sql.Stmt) error {
		values := make([]any, len(p.table.Columns))
		for row := range b.Len {
			for i, c := range p.table.Columns {
				values[i] = cellValue(c.Kind, b.cell(c.Kind, i, row))
			}
			if _, err := s.Exec(values...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *sqlitePeer) Settle() error {
	_, err := p.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Scan runs one query a thread, each over a part of the keys or rowids.
func (p *sqlitePeer) Scan(s *Scan, threads int) (Answer, error) {
	conditions := []string{""}
	if threads > 1 {
		var err error
		if conditions, err = p.parts(threads); err != nil {
			return Answer{}, err
		}
	}
	return together(conditions, func(condition string) (Answer, error) { return p.answer(s.sql(p.table, condition)) })
}

// parts returns conditions that cut the table in n parts.
func (p *sqlitePeer) parts(n int) ([]string, error) {
	var cuts []string
	name := "(" + p.names(first(p.table.Key)) + ")"
	if p.rowid {
		name = "rowid"
		var most int64
		if err := p.db.QueryRow("SELECT max(rowid) FROM " + p.table.Name).Scan(&most); err != nil {
			return nil, err
		}
		for i := 1; i < n; i++ {
			cuts = append(cuts, fmt.Sprint(most*int64(i)/int64(n)))
		}
	} else {
		for i := 1; i < n; i++ {
			cuts = append(cuts, p.literal(p.setup.Splits[i*len(p.setup.Splits)/n]))
		}
	}
	out := []string{name + " < " + cuts[0]}
	for i := 1; i < len(cuts); i++ {
		out = append(out, fmt.Sprintf("%s >= %s AND %s < %s", name, cuts[i-1], name, cuts[i]))
	}
	return append(out, name+" >= "+cuts[len(cuts)-1]), nil
}

// literal returns a key as a row value.
func (p *sqlitePeer) literal(key Row) string {
	parts := make([]string, len(key))
	for i, c := range key {
		if parts[i] = fmt.Sprint(c.Int); p.table.Columns[i].Kind == Text {
			parts[i] = "'" + c.Text + "'"
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
