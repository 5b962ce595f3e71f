package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/internal/cli/sqltext"
	"github.com/minikudu/minikudu/schema"
)

func (s *session) createCommand() *cobra.Command {
	var columns, key, history string
	var nonUnique, kudu bool
	c := &cobra.Command{
		Use:   `create TABLE --columns "host string, ts unixtime_micros, usage double null" --key host,ts`,
		Short: "Make a table",
		Long: `Make a table, and the store if there is none.

A column is: name type [null] [default V] [encoding E] [compression C] [page BYTES].
Types: int8, int16, int32, int64, float, double, bool, string, varchar(N), binary,
decimal(P,S), date, unixtime_micros. Encodings: auto, plain, bitshuffle, rle, dict,
prefix. Compressions: default, none, lz4, snappy, zlib, zstd. With auto and default, each
page of the column gets the encoding and codec that suit its values. A name that is not
letters, digits and underscores is written in double quotes.

What is deleted or replaced can be read for as long as --history says, with scan --as-of,
get --as-of and diff, and takes space on disk until a compaction after that.`,
		Args: args(1, 1, "the name of a table"),
		RunE: func(c *cobra.Command, args []string) error {
			spec, err := parseSpec(columns, key, nonUnique)
			if err != nil {
				return err
			}
			spec.KuduCompatible = kudu
			if spec.History, err = parseHistory(history); err != nil {
				return err
			}
			return s.create(c.Context(), args[0], spec)
		},
	}
	c.Flags().StringVar(&columns, "columns", "", "column definitions, separated by commas")
	c.Flags().StringVar(&key, "key", "", "names of the primary key columns, separated by commas")
	c.Flags().BoolVar(&nonUnique, "non-unique", false, "let rows share a key: adds the key column "+schema.AutoIncrementName)
	c.Flags().BoolVar(&kudu, "kudu-compatible", false, "write column files that Kudu reads, which are larger")
	registerHistory(c, &history)
	return c
}

func parseSpec(columns, key string, nonUnique bool) (spec minikudu.TableSpec, err error) {
	if columns == "" {
		return spec, usage(`--columns is missing: name the columns, as in --columns "id int64, name string null"`)
	}
	if key == "" {
		return spec, usage("--key is missing: name the primary key columns, as in --key id")
	}
	spec.NonUnique = nonUnique
	if spec.Columns, err = schema.ParseColumns(columns); err != nil {
		return spec, usage("--columns: %w", err)
	}
	if spec.Key, err = sqltext.ParseNames(key); err != nil {
		return spec, usage("--key: %w", err)
	}
	return spec, checkSpec(spec)
}

// checkSpec refuses what CreateTable would refuse, before a store is made for it.
func checkSpec(spec minikudu.TableSpec) error {
	columns, key := slices.Clone(spec.Columns), slices.Clone(spec.Key)
	for i := range columns {
		if columns[i].Name == schema.AutoIncrementName {
			return usage("column %q: the name is reserved for the column that --non-unique adds", columns[i].Name)
		}
	}
	if spec.NonUnique {
		columns = append(columns, schema.Column{Name: schema.AutoIncrementName, Type: schema.Int64})
		key = append(key, schema.AutoIncrementName)
	}
	if _, err := schema.New(columns, key, schema.Limits{}); err != nil {
		return usage("%w", err)
	}
	return nil
}

func (s *session) create(ctx context.Context, name string, spec minikudu.TableSpec) error {
	if name == "" {
		return usage("the name of a table must not be empty")
	}
	return s.withStore(creates, func(db *minikudu.DB) error {
		t, err := db.CreateTable(ctx, name, spec)
		if err != nil {
			return err
		}
		if s.json {
			return s.printJSON(describe(t))
		}
		return s.printDescription(format{"table"}, t)
	})
}
