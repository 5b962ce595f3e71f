package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/vfs"
)

func (s *session) verifyCommand() *cobra.Command {
	return &cobra.Command{Use: "verify [TABLE]", Short: "Read everything and check it",
		Long: `Read every byte of the store, or of one table, and check checksums, indexes, the order of
keys, filters and summaries. Exit status 1 when there is damage; every damaged place is
printed with its file, section and offset.`,
		Args: args(0, 1, "at most the name of a table"),
		RunE: func(c *cobra.Command, args []string) error { return s.verify(c.Context(), args) }}
}

// verification is verify's result as JSON.
type verification struct {
	OK      bool     `json:"ok"`
	Tables  int      `json:"tables"`
	RowSets int      `json:"rowsets"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	Damage  []damage `json:"damage"`
}

type damage struct {
	Path    string `json:"path,omitempty"`
	Section string `json:"section,omitempty"`
	Offset  int64  `json:"offset"`
	Message string `json:"message"`
}

func (s *session) verify(ctx context.Context, tables []string) error {
	v := verification{Damage: []damage{}}
	err := s.withStore(reads, func(db *minikudu.DB) error {
		var only []*minikudu.Table
		for _, name := range tables {
			t, err := table(db, name)
			if err != nil {
				return err
			}
			only = append(only, t)
		}
		r, err := db.Verify(ctx, only...)
		if err != nil {
			return err
		}
		v.Tables, v.RowSets, v.Rows, v.Bytes = r.Tables, r.RowSets, r.Rows, r.Bytes
		for _, err := range r.Damage {
			v.Damage = append(v.Damage, describeDamage(err))
		}
		return nil
	})
	switch {
	case errors.Is(err, minikudu.ErrCorruption): // the store does not even open
		v.Damage = append(v.Damage, describeDamage(err))
	case err != nil:
		return err
	}
	v.OK = len(v.Damage) == 0
	return s.printVerification(&v)
}

func describeDamage(err error) damage {
	d := damage{Message: strings.Join(strings.Fields(err.Error()), " ")}
	var c *vfs.CorruptionError
	if errors.As(err, &c) {
		d.Path, d.Section, d.Offset = c.Path, c.Section, c.Offset
	}
	return d
}

func (s *session) printVerification(v *verification) (err error) {
	if s.json {
		err = s.printJSON(v)
	} else {
		_, err = fmt.Fprintf(s.out, "tables   %d\nrowsets  %d\nrows     %d\nbytes    %d\ndamage   %d\n", v.Tables, v.RowSets, v.Rows, v.Bytes, len(v.Damage))
		for _, d := range v.Damage {
			fmt.Fprintln(s.out, d.Message)
		}
	}
	if err != nil || v.OK {
		return err
	}
	return &exitError{exitPartial, fmt.Errorf("%d damaged places, the first: %s; restore the store from a copy", len(v.Damage), v.Damage[0].Message)}
}
