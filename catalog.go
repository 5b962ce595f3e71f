package minikudu

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/tablet"
)

// Column describes a column: see package schema.
type Column = schema.Column

// TableSpec describes a table to be created.
type TableSpec struct {
	// Columns in any order; key columns are put first. Their ids are assigned.
	Columns []Column
	// Key names the primary key columns, in key order.
	Key []string
	// NonUnique adds a generated int64 column named auto_incrementing_id as the last
	// key column, counting from 1, so that rows may share the named key.
	NonUnique bool
	// History is how long what was deleted or replaced can still be read: 0 stands for
	// DefaultHistory, NoHistory for not at all.
	History time.Duration
	// KuduCompatible writes only encodings that Kudu reads. The default takes less space.
	KuduCompatible bool
}

// history returns the effective retention, 0 for none.
func (s *TableSpec) history() (time.Duration, error) {
	switch {
	case s.History == 0:
		return DefaultHistory, nil
	case s.History == NoHistory:
		return 0, nil
	case s.History < 0:
		return 0, fmt.Errorf("%w: history of %v", ErrInvalidArgument, s.History)
	}
	return s.History, nil
}

// CreateTable makes a table, durable when it returns. An existing name is
// ErrAlreadyPresent, a bad name ErrInvalidArgument and a bad description a
// schema.SchemaError; then nothing was made.
func (db *DB) CreateTable(ctx context.Context, name string, spec TableSpec) (*Table, error) {
	if err := db.enterWrite(); err != nil {
		return nil, err
	}
	defer db.gate.exit()
	sch, err := spec.schema(db.opts.Limits)
	if err != nil {
		return nil, err
	}
	if err := checkName("table", name, db.opts.Limits.MaxNameBytes); err != nil {
		return nil, err
	}
	history, err := spec.history()
	if err != nil {
		return nil, err
	}
	db.catalog.change.Lock()
	defer db.catalog.change.Unlock()
	if _, err := db.Table(name); err == nil {
		return nil, fmt.Errorf("table %q: %w", name, ErrAlreadyPresent)
	}
	return db.addTable(ctx, sch, &manifest.Table{Name: name, Retention: history, KuduCompatible: spec.KuduCompatible})
}

// schema returns the schema with ids assigned.
func (s *TableSpec) schema(limits schema.Limits) (*schema.Schema, error) {
	columns := append([]Column(nil), s.Columns...)
	key := append([]string(nil), s.Key...)
	for i := range columns {
		if columns[i].Name == schema.AutoIncrementName {
			return nil, &schema.SchemaError{Column: columns[i].Name, Reason: "the name is reserved for the generated id"}
		}
		if columns[i].ReadDefault.IsNull() {
			columns[i].ReadDefault = columns[i].Default
		}
	}
	if s.NonUnique {
		columns = append(columns, Column{Name: schema.AutoIncrementName, Type: schema.Int64})
		key = append(key, schema.AutoIncrementName)
	}
	sch, err := schema.New(columns, key, limits)
	if err != nil {
		return nil, err
	}
	columns = sch.Columns()
	for i := range columns {
		columns[i].ID = schema.ColumnID(i)
	}
	return schema.New(columns, key, limits)
}

func checkName(thing, name string, max int) error {
	reason := ""
	switch {
	case name == "":
		reason = "empty"
	case len(name) > max:
		reason = fmt.Sprintf("%d bytes, at most %d", len(name), max)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		reason = "must be UTF-8 without NUL"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s name: %s", ErrInvalidArgument, thing, reason)
}

// addTable writes a new table, of which the name and the options are given, to the manifest and opens it.
func (db *DB) addTable(ctx context.Context, sch *schema.Schema, mt *manifest.Table) (*Table, error) {
	s := db.manifest.State()
	mt.ID, mt.State, mt.NextColumn, mt.Limits = s.NextTable, manifest.TableLive, schema.ColumnID(sch.Len()), db.opts.Limits
	mt.Versions = []manifest.SchemaVersion{{Version: 1, At: db.clock.Now(), NumKey: sch.NumKey()}}
	for _, c := range sch.Columns() {
		mt.Versions[0].Columns = append(mt.Versions[0].Columns, manifest.Column{Column: c})
	}
	tab := &manifest.Tablet{ID: s.NextTablet, Table: mt.ID, State: manifest.TabletLive}
	if err := db.edit(ctx, &manifest.Edit{Tables: []*manifest.Table{mt}, AddTablets: []*manifest.Tablet{tab}}); err != nil {
		return nil, fmt.Errorf("creating table %q: %w", mt.Name, err)
	}
	opened, err := tablet.Open(db.tabletEnv(s, mt), tablet.State{ID: tablet.ID(tab.ID), Schema: sch, SchemaVersion: 1})
	if err != nil {
		return nil, fmt.Errorf("creating table %q: %w", mt.Name, err)
	}
	t := newTable(db, mt, sch, opened)
	db.setTables(append(append([]*Table(nil), db.tableList()...), t))
	return t, nil
}

// Table returns the named table; a missing one is ErrNotFound, naming those there are.
func (db *DB) Table(name string) (*Table, error) {
	db.catalog.RLock()
	t, list := db.catalog.tables[name], db.catalog.list
	db.catalog.RUnlock()
	if db.gate.isShut() {
		return nil, ErrClosed
	}
	if t != nil {
		return t, nil
	}
	var names []string
	for _, t := range list {
		if names = append(names, t.name); len(names) == 20 {
			names = append(names, "…")
			break
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("table %q: %w: there are no tables", name, ErrNotFound)
	}
	return nil, fmt.Errorf("table %q: %w: there is %s", name, ErrNotFound, strings.Join(names, ", "))
}

// DropTable removes a table and its data, durably when it returns; a missing one is
// ErrNotFound, as is every later call on its handles. Scans that run over it finish;
// its files go when the last of them has.
func (db *DB) DropTable(ctx context.Context, name string) error {
	if err := db.enterWrite(); err != nil {
		return err
	}
	defer db.gate.exit()
	db.catalog.change.Lock()
	defer db.catalog.change.Unlock()
	t, err := db.Table(name)
	if err != nil {
		return err
	}
	if err := t.turn.halt(ctx, db.gate.shut); err != nil {
		return err
	}
	defer db.background.note()
	defer t.turn.give()
	return t.tablet.Exclude(func() error { return db.removeTable(ctx, t) })
}

// removeTable takes a table out of the catalog. No flush of it is running.
func (db *DB) removeTable(ctx context.Context, t *Table) error {
	db.commit.Lock() // commits that are logged already go on, later ones see the mark
	t.dropped.Store(true)
	db.apply.Lock()
	memory := t.tablet.Memory().Bytes
	db.apply.Unlock()
	db.commit.Unlock()
	if err := db.edit(ctx, db.removal(t)); err != nil {
		t.dropped.Store(false)
		return fmt.Errorf("dropping table %q: %w", t.name, err)
	}
	var rest []*Table
	for _, o := range db.tableList() {
		if o != t {
			rest = append(rest, o)
		}
	}
	db.setTables(rest)
	db.memory.release(memory)
	t.tablet.Drop()
	if err := db.trimLog(ctx); err != nil {
		db.backgroundError(err) // the table is dropped; the next flush or open tries again
	}
	return nil
}

// removal is the edit that removes a table and its files.
func (db *DB) removal(t *Table) *manifest.Edit {
	id := manifest.TabletID(t.tablet.ID())
	e := &manifest.Edit{ClockFloor: db.snapshot(), RemoveTablets: []manifest.TabletID{id}, RemoveTables: []manifest.TableID{manifest.TableID(t.id)}}
	for _, m := range db.manifest.State().RowSets[id] {
		e.RemoveFiles = append(e.RemoveFiles, m.Files()...)
	}
	return e
}
