package main

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// sqlStore is what the peers that speak SQL through database/sql share.
type sqlStore struct {
	setup *Setup
	table *Table
	db    *sql.DB

	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

func (p *sqlStore) start(s *Setup, db *sql.DB) {
	p.setup, p.table, p.db, p.prepared = s, s.Table, db, map[string]*sql.Stmt{}
}

// create makes the table; suffix stands behind its columns.
func (p *sqlStore) create(types map[Kind]string, key bool, suffix string) error {
	var parts []string
	for _, c := range p.table.Columns {
		parts = append(parts, c.Name+" "+types[c.Kind]+" NOT NULL")
	}
	if key {
		parts = append(parts, "PRIMARY KEY ("+p.names(first(p.table.Key))+")")
	}
	_, err := p.db.Exec("CREATE TABLE " + p.table.Name + " (" + strings.Join(parts, ", ") + ")" + suffix)
	return err
}

func (p *sqlStore) names(columns []int) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = p.table.Columns[c].Name
	}
	return strings.Join(names, ", ")
}

// statement returns the prepared statement of a text.
func (p *sqlStore) statement(text string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.prepared[text]; s != nil {
		return s, nil
	}
	s, err := p.db.Prepare(text)
	if err == nil {
		p.prepared[text] = s
	}
	return s, err
}

// values returns the cells of a key as arguments.
func (p *sqlStore) values(key Row) []any {
	out := make([]any, 0, len(key)+2)
	for i, c := range key {
		out = append(out, cellValue(p.table.Columns[i].Kind, c))
	}
	return out
}

func cellValue(k Kind, c Cell) any {
	switch k {
	case Int:
		return c.Int
	case Float:
		return c.Float
	default:
		return c.Text
	}
}

// sameKey is the condition that n key columns equal arguments.
func (p *sqlStore) sameKey(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = p.table.Columns[i].Name + " = ?"
	}
	return strings.Join(parts, " AND ")
}

func (p *sqlStore) Get(key, row Row) (bool, error) {
	return p.GetColumns(key, first(len(p.table.Columns)), row)
}

func (p *sqlStore) GetColumns(key Row, columns []int, row Row) (bool, error) {
	s, err := p.statement("SELECT " + p.names(columns) + " FROM " + p.table.Name + " WHERE " + p.sameKey(p.table.Key))
	if err != nil {
		return false, err
	}
	targets := make([]any, len(columns))
	for i, c := range columns {
		switch p.table.Columns[c].Kind {
		case Int:
			targets[i] = &row[i].Int
		case Float:
			targets[i] = &row[i].Float
		default:
			targets[i] = &row[i].Text
		}
	}
	err = s.QueryRow(p.values(key)...).Scan(targets...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (p *sqlStore) answer(text string, args ...any) (Answer, error) {
	s, err := p.statement(text)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	err = s.QueryRow(args...).Scan(&a.Count, &a.Sum)
	return a, err
}

func (p *sqlStore) Range(r *Range) (Answer, error) {
	last := p.table.Columns[p.table.Key-1].Name
	where := fmt.Sprintf("%s >= ? AND %s < ?", last, last)
	if len(r.Prefix) > 0 {
		where = p.sameKey(len(r.Prefix)) + " AND " + where
	}
	return p.answer(sqlAggregate(p.table, r.Sum)+" WHERE "+where, append(p.values(r.Prefix), r.From, r.To)...)
}

// Update changes the rows of a batch in one transaction.
func (p *sqlStore) Update(keys []Row, column int, values []int64) error {
	s, err := p.statement("UPDATE " + p.table.Name + " SET " + p.table.Columns[column].Name + " = ? WHERE " + p.sameKey(p.table.Key))
	if err != nil {
		return err
	}
	return p.transaction(s, func(s *sql.Stmt) error {
		for i, key := range keys {
			result, err := s.Exec(append([]any{values[i]}, p.values(key)...)...)
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil || n != 1 {
				return errors.Join(err, errMissing)
			}
		}
		return nil
	})
}

func (p *sqlStore) transaction(s *sql.Stmt, fn func(s *sql.Stmt) error) error {
	tx, err := p.db.Begin()
	if err != nil {
		return err
	}
	if err := fn(tx.Stmt(s)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (p *sqlStore) Close() error {
	var errs []error
	for _, s := range p.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}
