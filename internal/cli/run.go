package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu"
)

// The exit statuses.
const (
	exitDone    = 0
	exitPartial = 1 // rows rejected, a key not found, damage found
	exitUsage   = 2
	exitFailed  = 3
)

// App is the command line with its surroundings.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Tune, unless nil, is told the memory budget, and what a command holds beside it,
	// before a store is opened.
	Tune func(memory int64)
}

// Run runs one command without tuning the process and returns the exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return (&App{Stdin: stdin, Stdout: stdout, Stderr: stderr}).Run(ctx, args)
}

// Run runs one command and returns the exit status. args do not name the program.
func (a *App) Run(ctx context.Context, args []string) int {
	s := &session{app: a, out: bufio.NewWriterSize(a.Stdout, 64<<10)}
	root := s.root()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(s.out)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if ferr := s.out.Flush(); err == nil && ferr != nil {
		err = fmt.Errorf("writing the result: %w", ferr)
	}
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if message := err.Error(); message != "" {
		s.message("error", advise(err, message))
	}
	return code
}

// session is one run of a command.
type session struct {
	app *App
	out *bufio.Writer

	// Global flags.
	dir          string
	json         bool
	memory       string
	sync         string
	readOnly     bool
	noCompaction bool

	logger *slog.Logger // of the engine; nil: it is silent
	beside int64        // memory that a command holds beside the budget, in bytes
}

// exitError carries the exit status of an error whose kind does not imply it.
type exitError struct {
	code int
	err  error // nil: everything was said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// errPartial ends a command that has said what went wrong.
var errPartial error = &exitError{code: exitPartial}

// usage marks wrong usage.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// failed marks what is not the user's fault, although the error may say "invalid".
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFailed, err}
}

func exitCode(err error) int {
	var e *exitError
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, minikudu.ErrOverflow):
		return exitFailed
	case errors.Is(err, minikudu.ErrInvalidArgument), errors.Is(err, minikudu.ErrImmutable):
		return exitUsage
	}
	return exitFailed
}

// hints say what to do about errors that callers can act on.
var hints = []struct {
	err  error
	hint string
}{
	{minikudu.ErrLocked, "close the program that has the store open, or wait for it, and try again"},
	{minikudu.ErrReplayTooLarge, "run it with a larger --memory, or run minikudu flush first"},
	{minikudu.ErrReadOnly, "leave out --read-only"},
	{minikudu.ErrCorruption, "run minikudu verify for all that is damaged, and restore the store from a copy"},
	{minikudu.ErrTooLarge, "use a smaller --batch-rows, no --atomic, or a larger --memory"},
	{minikudu.ErrOverflow, "use avg, or a filter that selects fewer rows"},
	{minikudu.ErrHistoryExpired, "name a later time; --history of create and import says how long a table's history is kept, and pin keeps a state for longer"},
	{minikudu.ErrNotSupported, "use the version of minikudu that wrote it, or a newer one"},
	{context.Canceled, "it was interrupted"},
	{fs.ErrPermission, "give yourself access to it"},
}

// advise returns the message in one line, followed by what to do.
func advise(err error, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return message + "; " + h.hint
		}
	}
	return message
}

// message writes one line to standard error: "error: …", or {"error":"…"}.
func (s *session) message(kind, text string) {
	if s.json {
		s.messageJSON(map[string]string{kind: text})
		return
	}
	fmt.Fprintf(s.app.Stderr, "%s: %s\n", kind, text)
}

func (s *session) messageJSON(v any) { _ = json.NewEncoder(s.app.Stderr).Encode(v) }

// root builds the commands.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "minikudu",
		Short:         "A columnar store with a primary key, in a directory",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command %q; minikudu --help lists the commands", args[0])
			}
			return usage("name a command; minikudu --help lists them")
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&s.dir, "db", "./minikudu-data", "directory of the store")
	f.BoolVar(&s.json, "json", false, "print results and messages as JSON, one object a line")
	f.StringVar(&s.memory, "memory", "512MiB", "memory budget: 64MiB, 64MB, 64m or bytes")
	f.StringVar(&s.sync, "sync", "sync", "durability of commits: sync, interval or none")
	f.BoolVar(&s.noCompaction, "no-compaction", false, "merge no files in the background; the command compact does all the same")
	f.BoolVar(&s.readOnly, "read-only", false, "open the store read-only, whatever the command")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(s.createCommand(), s.importCommand(), s.scanCommand(), s.getCommand(), s.tablesCommand(),
		s.insertCommand("insert", minikudu.OpInsert), s.insertCommand("upsert", minikudu.OpUpsert), s.updateCommand(), s.deleteCommand(),
		s.describeCommand(), s.statsCommand(), s.layoutCommand(), s.flushCommand(), s.compactCommand(), s.watchCommand(), s.clockCommand(),
		s.diffCommand(), s.pinCommand(), s.unpinCommand(), s.pinsCommand(), s.verifyCommand(), s.dumpCommand(), s.benchCommand(), s.demoCommand(), s.versionCommand())
	return root
}

const rootHelp = `minikudu keeps tables with a primary key in a directory, column by column.

  minikudu import flights flights.parquet --key date,origin,destination --non-unique
  minikudu scan flights --where "delay > 60" --agg "count(*), avg(delay)" --group-by origin
  minikudu demo

Exit status: 0 done; 1 done, but rows were rejected, a key was not found or damage was
found; 2 wrong usage; 3 anything else. Results go to standard output, messages to
standard error.`

// args wants the given number of arguments, max < 0 for any number above min.
func args(min, max int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		if len(given) >= min && (max < 0 || len(given) <= max) {
			return nil
		}
		return usage("%s takes %s, %d arguments were given; see %s --help", c.Name(), what, len(given), c.CommandPath())
	}
}

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: args(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			version, goVersion := buildVersion()
			if s.json {
				return s.printJSON(map[string]string{"version": version, "go": goVersion})
			}
			_, err := fmt.Fprintf(s.out, "minikudu %s (%s)\n", version, goVersion)
			return err
		}}
}

func buildVersion() (version, goVersion string) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)", "go"
	}
	return info.Main.Version, info.GoVersion
}

// printJSON prints one object on a line.
func (s *session) printJSON(v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
