package main

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/duckdb/duckdb-go/v2"
)

func duckdbPeers() []Info {
	peer := func(name, settings string, key bool) Info {
		return Info{Name: name, Family: "duckdb", Keyed: key, Quick: true, Settings: "Appender flushed after every batch, " + settings,
			New: func() Peer { return &duckdbPeer{key: key} }}
	}
	return []Info{peer("duckdb", "no key", false), peer("duckdb-key", "PRIMARY KEY", true)}
}

// duckdbPeer is DuckDB's C++ library.
type duckdbPeer struct {
	sqlStore
	key       bool
	connector *duckdb.Connector
	conn      driver.Conn // of the appender
	appender  *duckdb.Appender
	threads   int // that were set; 0 is the default
}

func (p *duckdbPeer) Open(s *Setup) error {
	var err error
	if p.connector, err = duckdb.NewConnector(filepath.Join(s.Dir, "store.duckdb"), nil); err != nil {
		return err
	}
	p.start(s, sql.OpenDB(p.connector))
	if !s.Create {
		return p.db.Ping()
	}
	return p.create(map[Kind]string{Int: "BIGINT", Float: "DOUBLE", Text: "VARCHAR"}, p.key, "")
}

func (p *duckdbPeer) Load(b *Batch) error {
	if p.appender == nil {
		var err error
		if p.conn, err = p.connector.Connect(ctx); err != nil {
			return err
		}
		if p.appender, err = duckdb.NewAppenderFromConn(p.conn, "", p.table.Name); err != nil {
			return err
		}
	}
	values := make([]driver.Value, len(p.table.Columns))
	for row := range b.Len {
		for i, c := range p.table.Columns {
			values[i] = cellValue(c.Kind, b.cell(c.Kind, i, row))
		}
		if err := p.appender.AppendRow(values...); err != nil {
			return err
		}
	}
	return p.appender.Flush()
}

func (p *duckdbPeer) Settle() error {
	_, err := p.db.Exec("CHECKPOINT")
	return err
}

func (p *duckdbPeer) Scan(s *Scan, threads int) (Answer, error) {
	if p.threads != threads {
		if _, err := p.db.Exec(fmt.Sprintf("SET threads = %d", threads)); err != nil {
			return Answer{}, err
		}
		p.threads = threads
	}
	return p.answer(s.sql(p.table, ""))
}

func (p *duckdbPeer) Close() error {
	var errs []error
	if p.appender != nil {
		errs = append(errs, p.appender.Close(), p.conn.Close())
	}
	return errors.Join(append(errs, p.sqlStore.Close(), p.connector.Close())...)
}
