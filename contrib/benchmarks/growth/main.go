package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"github.com/dustin/go-humanize"
)

func main() {
	err := run(os.Args[1:], inProcess)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// run is the program. A phase of a run is started by start.
func run(args []string, start func(phase string, args []string) error) error {
	if len(args) > 0 && args[0] == "report" {
		return runReport(args[1:])
	}
	s, phase, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if phase != "" {
		return s.phase(phase)
	}
	if err := s.prepare(); err != nil {
		return err
	}
	for _, phase := range phases {
		if err := start(phase, args); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
	}
	return nil
}

// The phases of a run. Opens are repeated, as they take no time.
var phases = []string{"load", "open", "open", "open", "open", "open", "read", "tight"}

// parse reads the command line.
func parse(args []string, out io.Writer) (s *Settings, phase string, err error) {
	s = &Settings{Command: command(args)}
	f := flag.NewFlagSet("growth", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&s.Workload, "workload", "narrow", "narrow or cpu")
	f.Int64Var(&s.Rows, "rows", 1_000_000, "rows to be reached")
	memory := f.String("memory", "512MiB", "memory budget of the store, and limit of the Go runtime")
	f.StringVar(&s.Dir, "dir", "", "directory of the store, on the disk to be measured; required")
	f.StringVar(&s.Out, "out", "", "file of results, lines of JSON; required")
	f.BoolVar(&s.Existing, "use-existing", false, "go on with the store and the file of results that are there")
	f.Int64Var(&s.Batch, "batch", 1000, "rows of a commit")
	f.Int64Var(&s.Every, "every", 0, "rows between samples (default a hundredth of all)")
	f.Float64Var(&s.Seconds, "seconds", 5, "time of each measure of reads by key")
	f.StringVar(&s.Profile, "profile", "", "directory of CPU profiles, one of each phase but open")
	f.StringVar(&phase, "phase", "", "for the program's own use")
	if err := f.Parse(args); err != nil {
		return nil, "", err
	}
	budget, err := humanize.ParseBytes(*memory)
	s.Memory = int64(budget)
	if s.Every == 0 {
		s.Every = max(s.Batch, s.Rows/100)
	}
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("-memory %q: %w", *memory, err)
	case f.NArg() > 0:
		return nil, "", fmt.Errorf("unexpected argument %q", f.Arg(0))
	case s.Dir == "" || s.Out == "":
		return nil, "", errors.New("-dir and -out are required")
	case s.Rows < 1 || s.Batch < 1 || s.Every < 1 || s.Seconds <= 0:
		return nil, "", errors.New("-rows, -batch, -every and -seconds must be positive")
	}
	_, err = workloadNamed(s.Workload)
	return s, phase, err
}

// command is the command line without the directories of a machine.
func command(args []string) string {
	var out []string
	for i := 0; i < len(args); i++ {
		name := strings.TrimLeft(args[i], "-")
		if name, _, found := strings.Cut(name, "="); found && local[name] {
			continue
		}
		if local[name] {
			i++
			continue
		}
		out = append(out, args[i])
	}
	return "go run ./growth " + strings.Join(out, " ") + " -dir … -out …"
}

// local are the flags whose values belong to a machine.
var local = map[string]bool{"dir": true, "out": true, "profile": true, "phase": true}

// inProcess runs a phase in a process of its own: this program again.
func inProcess(phase string, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append(args, "-phase", phase)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

func (s *Settings) phase(name string) (err error) {
	j, err := openJournal(s.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if s.Profile != "" && name != "open" {
		stop, err := profile(filepath.Join(s.Profile, name+".pprof"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	switch name {
	case "load":
		return s.load(j)
	case "open":
		return s.measureOpen(j)
	case "read":
		return s.read(j)
	case "tight":
		return s.readTight(j)
	default:
		return fmt.Errorf("no phase %q", name)
	}
}

// profile begins a CPU profile.
func profile(path string) (stop func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// prepare begins a file of results, or goes on after its last whole line, and refuses a
// directory that is not for this run.
func (s *Settings) prepare() error {
	if !s.Existing {
		entries, err := os.ReadDir(s.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("%s is not empty: name another directory, or add -use-existing", s.Dir)
		}
		return os.WriteFile(s.Out, nil, 0o666)
	}
	text, err := os.ReadFile(s.Out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Truncate(s.Out, int64(bytes.LastIndexByte(text, '\n')+1)); err != nil {
		return err
	}
	lines, err := readLines(s.Out)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.Run != nil && l.Run.Workload != s.Workload {
			return fmt.Errorf("%s is of workload %s", s.Out, l.Run.Workload)
		}
	}
	return nil
}
