package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
)

func (s *session) pinCommand() *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "pin NAME",
		Short: "Keep the state of all tables at a time readable",
		Long: `Keep the state of all tables at a time, now unless --at says another, until unpin, however
long their history is kept. scan, get and diff read it by the timestamp that is printed. What
was deleted or replaced since takes space on disk meanwhile.

` + timesHelp,
		Example: "  minikudu pin release\n  minikudu pin before-the-accident --at -10m",
		Args:    args(1, 1, "a name"),
		RunE: func(c *cobra.Command, args []string) error {
			var ts minikudu.Timestamp
			if c.Flags().Changed("at") {
				var err error
				if ts, err = parseMoment(at); err != nil {
					return usage("--at: %w", err)
				}
			}
			return s.withStore(writes, func(db *minikudu.DB) error { return s.pin(c.Context(), db, args[0], ts) })
		}}
	c.Flags().StringVar(&at, "at", "", "keep the state at this time, which must be within the history of all tables (default: now)")
	return c
}

// pinned is a pin as JSON.
type pinned struct {
	Name      string             `json:"pin"`
	Timestamp minikudu.Timestamp `json:"timestamp"`
	Time      string             `json:"time"`
}

func (s *session) pin(ctx context.Context, db *minikudu.DB, name string, at minikudu.Timestamp) error {
	at, err := db.Pin(ctx, name, at)
	switch {
	case errors.Is(err, minikudu.ErrAlreadyPresent):
		return fmt.Errorf("%w; choose another name, or unpin it first", err)
	case err != nil:
		return err
	}
	p := pinned{name, at, formatMicros(at.Time())}
	if s.json {
		return s.printJSON(p)
	}
	_, err = fmt.Fprintf(s.out, "pin        %s\ntimestamp  %d\ntime       %s\n", p.Name, p.Timestamp, p.Time)
	return err
}

func (s *session) unpinCommand() *cobra.Command {
	return &cobra.Command{Use: "unpin NAME", Short: "End a pin",
		Long: "End a pin. What only the pin kept goes with the next compaction.",
		Args: args(1, 1, "the name of a pin"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withStore(writes, func(db *minikudu.DB) error {
				err := db.Unpin(c.Context(), args[0])
				if errors.Is(err, minikudu.ErrNotFound) {
					return fmt.Errorf("%w; minikudu pins lists those there are", err)
				}
				return err
			})
		}}
}

func (s *session) pinsCommand() *cobra.Command {
	var f format
	c := &cobra.Command{Use: "pins", Short: "List the pins", Args: args(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.withStore(reads, func(db *minikudu.DB) error {
				l := newListing(`pin string, timestamp int64, "time" unixtime_micros`)
				for _, p := range db.Pins() {
					l.add(p.Name, int64(p.Timestamp), p.Timestamp.Time())
				}
				return s.print(f, l)
			})
		}}
	f.register(c)
	return c
}
