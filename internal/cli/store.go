package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
)

// access is what a command does with the store.
type access uint8

const (
	reads   access = iota // changes no file
	writes                // an existing store
	creates               // makes the store where there is none
)

var durabilities = map[string]minikudu.Durability{"sync": minikudu.Sync, "interval": minikudu.Interval, "none": minikudu.NoSync}

// options turns the global flags into options.
func (s *session) options(a access) (*minikudu.Options, error) {
	memory, err := sqltext.ParseSize(s.memory)
	if err != nil {
		return nil, usage("--memory %q: %w", s.memory, err)
	}
	durability, ok := durabilities[s.sync]
	if !ok {
		return nil, usage("--sync %q: expected sync, interval or none", s.sync)
	}
	o := &minikudu.Options{MemoryBudget: memory, Durability: durability, ReadOnly: s.readOnly || a == reads, ErrorIfMissing: a != creates, Logger: s.logger}
	if s.noCompaction {
		o.CompactionWorkers = -1
	}
	if err := o.Validate(); err != nil {
		return nil, usage("--memory %q: %w", s.memory, err)
	}
	return o, nil
}

// open opens the store.
func (s *session) open(a access) (*minikudu.DB, error) {
	o, err := s.options(a)
	if err != nil {
		return nil, err
	}
	if a != reads && s.readOnly {
		return nil, fmt.Errorf("the command writes to the store: %w", minikudu.ErrReadOnly)
	}
	o.Events = &minikudu.EventListener{BackgroundError: func(err error) {
		s.message("warning", advise(err, fmt.Sprintf("background work failed and will be tried again: %v", err)))
	}}
	if s.app.Tune != nil {
		s.app.Tune(o.MemoryBudget + s.beside)
	}
	db, err := minikudu.Open(s.dir, o)
	switch {
	case errors.Is(err, minikudu.ErrCorruption):
	case errors.Is(err, fs.ErrNotExist):
		return nil, &missingStore{s.dir}
	}
	return db, failed(err)
}

// missingStore says that there is no store in a directory.
type missingStore struct{ dir string }

func (e *missingStore) Error() string {
	return fmt.Sprintf("there is no store in %s; name another directory with --db, or make a table with create or import", e.dir)
}

// withStore runs fn over the open store and closes it.
func (s *session) withStore(a access, fn func(*minikudu.DB) error) (err error) {
	db, err := s.open(a)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := db.Close(); err == nil && cerr != nil {
			err = failed(fmt.Errorf("closing the store: %w", cerr))
		}
	}()
	return fn(db)
}

// withTable runs fn over a table of the open store and closes the store.
func (s *session) withTable(a access, name string, fn func(*minikudu.DB, *minikudu.Table) error) error {
	return s.withStore(a, func(db *minikudu.DB) error {
		t, err := table(db, name)
		if err != nil {
			return err
		}
		return fn(db, t)
	})
}

// table returns the named table.
func table(db *minikudu.DB, name string) (*minikudu.Table, error) {
	t, err := db.Table(name)
	if errors.Is(err, minikudu.ErrNotFound) {
		return nil, failed(fmt.Errorf("%w; make it with create or import", err))
	}
	return t, err
}
