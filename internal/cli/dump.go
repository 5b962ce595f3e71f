package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/diskrowset"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/manifest"
	"github.com/minikudu/minikudu/internal/record"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/vfs"
	"github.com/minikudu/minikudu/wal"
)

func (s *session) dumpCommand() *cobra.Command {
	return &cobra.Command{Use: "dump FILE", Short: "Print the parts of a file of a store, or of a Kudu column file",
		Long: `Print what a file consists of, part by part with its offset and size: a rowset file or a file of
changes or history down to the pages of its columns, a manifest with its edits, a log segment
with its records, or a column file (CFile) written by Apache Kudu. Checksums are verified on the way.`,
		Args: args(1, 1, "a file"),
		RunE: func(c *cobra.Command, args []string) error {
			d := &dumper{session: s, fs: vfs.OS, path: args[0]}
			return failed(d.run(c.Context()))
		}}
}

// dumper prints the parts of a file.
type dumper struct {
	*session
	fs   vfs.FS
	path string
}

// part is one line of a dump: details are names and values in turn.
func (d *dumper) part(kind string, offset, size int64, details ...any) error {
	if !d.json {
		line := fmt.Sprintf("%-22s %10d %10d ", kind, offset, size)
		for i := 0; i < len(details); i += 2 {
			line += fmt.Sprintf(" %s=%v", details[i], printable(fmt.Sprint(details[i+1])))
		}
		_, err := fmt.Fprintln(d.out, strings.TrimRight(line, " "))
		return err
	}
	out := map[string]any{"part": kind, "offset": offset, "size": size}
	for i := 0; i < len(details); i += 2 {
		v := details[i+1]
		if str, ok := v.(fmt.Stringer); ok {
			v = str.String()
		}
		out[details[i].(string)] = v
	}
	return d.printJSON(out)
}

// run finds out what the file is and prints it.
func (d *dumper) run(ctx context.Context) error {
	f, err := d.fs.Open(d.path, vfs.KindOther)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	head := make([]byte, min(size, binfmt.HeaderSize))
	if _, err := f.ReadAtContext(ctx, head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case strings.HasPrefix(string(head), "kuducfl2"), strings.HasPrefix(string(head), "kuducfil"):
		if err := d.heading(); err != nil {
			return err
		}
		return d.column(ctx, f, 0, size, "")
	case !strings.HasPrefix(string(head), binfmt.Magic):
		return fmt.Errorf("%s is no file of a store and no Kudu column file", d.path)
	}
	unlock, err := d.lockStore()
	if err != nil {
		return err
	}
	defer func() { _ = unlock.Close() }()
	h, err := binfmt.DecodeHeader(head)
	if err != nil {
		return d.at(err)
	}
	return d.store(ctx, f, size, h)
}

// store prints a file of a store.
func (d *dumper) store(ctx context.Context, f vfs.File, size int64, h binfmt.Header) error {
	if err := d.heading(); err != nil {
		return err
	}
	if err := d.part("header", 0, binfmt.HeaderSize, "kind", h.Kind, "format", h.Format, "store", h.Store, "file", h.File); err != nil {
		return err
	}
	switch h.Kind {
	case binfmt.FileManifest:
		return d.manifest(h)
	case binfmt.FileLog:
		return d.log(ctx)
	case binfmt.FileRowSet:
		return d.rowSet(ctx, f, size)
	case binfmt.FileDelta, binfmt.FileUndo:
		return d.changes(ctx, f, h.Kind, size)
	}
	return fmt.Errorf("%s is a %s file, which this version cannot print", d.path, h.Kind)
}

func (d *dumper) heading() error {
	if d.json {
		return nil
	}
	_, err := fmt.Fprintf(d.out, "%-22s %10s %10s  details\n", "part", "offset", "size")
	return err
}

// at names the file in an error that does not.
func (d *dumper) at(err error) error {
	var c *vfs.CorruptionError
	if errors.As(err, &c) && c.Path == "" {
		c.Path = d.path
	}
	return err
}

type nothing struct{}

func (nothing) Close() error { return nil }

// lockStore takes the lock of the store that the file lies in, so that nobody writes
// to it meanwhile. A file that was copied out of a store has none.
func (d *dumper) lockStore() (io.Closer, error) {
	abs, err := filepath.Abs(d.path)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{filepath.Dir(abs), filepath.Dir(filepath.Dir(abs))} {
		lock, err := d.fs.Lock(filepath.Join(dir, "LOCK"), true, false)
		if !errors.Is(err, fs.ErrNotExist) {
			return lock, err
		}
	}
	return nothing{}, nil
}

// column prints a column file that is a section of a file, or the whole of it.
func (d *dumper) column(ctx context.Context, f vfs.File, offset, size int64, name string) error {
	r, err := cfile.Open(ctx, f, offset, size, cfile.ReaderOptions{Path: d.path, Column: name, AllowNoChecksums: true})
	if err != nil {
		return err
	}
	prefix := "  "
	if name == "" {
		prefix = ""
	}
	return r.Walk(ctx, func(b cfile.BlockInfo) error {
		return d.part(prefix+b.Kind.String(), b.Offset, b.Size, blockDetails(r, &b)...)
	})
}

func blockDetails(r *cfile.Reader, b *cfile.BlockInfo) []any {
	compression := b.Compression.String()
	if b.Stored {
		compression = "none"
	}
	switch b.Kind {
	case cfile.BlockHeader:
		return nil
	case cfile.BlockFooter:
		return []any{"rows", b.Rows, "type", r.Type(), "nullable", r.Nullable(), "encoding", b.Encoding, "compression", b.Compression}
	case cfile.BlockData:
		return []any{"first_row", b.FirstRow, "rows", b.Rows, "encoding", b.Encoding, "compression", compression, "plain_size", b.PlainSize}
	case cfile.BlockDictionary:
		return []any{"words", b.Entries, "compression", compression, "plain_size", b.PlainSize}
	}
	return []any{"level", b.Level, "entries", b.Entries, "compression", compression, "plain_size", b.PlainSize}
}

// rowSet prints a rowset file, its columns down to pages.
func (d *dumper) rowSet(ctx context.Context, f vfs.File, size int64) error {
	dir, err := diskrowset.ReadDirectory(ctx, f, size, d.path)
	if err != nil {
		return err
	}
	end := int64(binfmt.HeaderSize)
	for _, sec := range dir.Sections {
		end = sec.Offset + sec.Length
		column := columnOf(dir, sec)
		if err := d.part(sectionName(sec.Kind), sec.Offset, sec.Length, "column", column); err != nil {
			return err
		}
		switch sec.Kind {
		case rowset.SectionColumn, rowset.SectionInsertTimes, rowset.SectionKeyIndex:
			if err := d.column(ctx, f, sec.Offset, sec.Length, column); err != nil {
				return err
			}
		}
	}
	return d.part("directory", end, size-end, "rows", dir.Rows, "columns", len(dir.Columns), "key_columns", dir.NumKey,
		"schema_version", dir.SchemaVersion, "min_insert", uint64(dir.MinInsert), "max_insert", uint64(dir.MaxInsert),
		"min_key", shortHex(dir.MinKey), "max_key", shortHex(dir.MaxKey))
}

// changes prints a file of changes, its lists down to pages.
func (d *dumper) changes(ctx context.Context, f vfs.File, kind binfmt.FileKind, size int64) error {
	dir, err := diskrowset.ReadDeltaDirectory(ctx, f, kind, size, d.path)
	if err != nil {
		return err
	}
	end := int64(binfmt.HeaderSize)
	section := func(name string, sec rowset.Section, column string) error {
		end = sec.Offset + sec.Length
		if err := d.part(name, sec.Offset, sec.Length, "column", column); err != nil {
			return err
		}
		return d.column(ctx, f, sec.Offset, sec.Length, column)
	}
	list := func(l *diskrowset.DeltaList, column string) error {
		if l.Count == 0 {
			return nil
		}
		return errors.Join(section("rows", l.Rows, column), section("times", l.Times, column))
	}
	for i := range dir.Columns {
		c := &dir.Columns[i]
		if err := errors.Join(section("cells", c.Values, c.Column.Name), list(&c.DeltaList, c.Column.Name)); err != nil {
			return err
		}
	}
	if err := errors.Join(list(&dir.Deletes, "(deletions)"), list(&dir.Births, "(births)")); err != nil {
		return err
	}
	return d.part("directory", end, size-end, "columns", len(dir.Columns), "deletions", dir.Deletes.Count, "births", dir.Births.Count,
		"min_time", uint64(dir.MinTime), "max_time", uint64(dir.MaxTime))
}

var sectionNames = map[rowset.SectionKind]string{rowset.SectionColumn: "column", rowset.SectionInsertTimes: "insert times",
	rowset.SectionKeyIndex: "key index", rowset.SectionFilters: "key filters", rowset.SectionZoneMap: "zone map"}

func sectionName(k rowset.SectionKind) string {
	if name, ok := sectionNames[k]; ok {
		return name
	}
	return fmt.Sprintf("section %d", k)
}

// columnOf names the column of a section, or what stands for one.
func columnOf(dir *diskrowset.Directory, sec rowset.Section) string {
	for i := range dir.Columns {
		if dir.Columns[i].ID == sec.Column && sec.Column >= 0 {
			return dir.Columns[i].Name
		}
	}
	return "(" + sectionName(sec.Kind) + ")"
}

// shortHex returns the first bytes in hexadecimal.
func shortHex(b []byte) string {
	if len(b) > 20 {
		return fmt.Sprintf("0x%x…", b[:20])
	}
	return fmt.Sprintf("0x%x", b)
}

// manifest prints a manifest with its edits.
func (d *dumper) manifest(h binfmt.Header) error {
	dir, name := filepath.Split(d.path)
	generation, ok := manifest.ParseName(name)
	if !ok || generation != h.File {
		return fmt.Errorf("%s holds the manifest of generation %d: give it its name back, %s", d.path, h.File, manifest.Name(h.File))
	}
	if dir == "" {
		dir = "."
	}
	_, err := manifest.Dump(d.fs, dir, generation, func(r manifest.Record) error {
		return d.part(frameNames[r.Type], r.Offset, r.Length, editDetails(r.Edit)...)
	})
	return err
}

var frameNames = map[manifest.FrameType]string{manifest.FramePart: "snapshot part", manifest.FrameEnd: "snapshot end",
	manifest.FrameEdit: "edit", manifest.FrameMark: "mark"}

// editDetails lists what an edit changes.
func editDetails(e *manifest.Edit) (out []any) {
	if e == nil {
		return nil
	}
	add := func(name string, n int, ids any) {
		if n > 0 {
			out = append(out, name, ids)
		}
	}
	if e.ClockFloor > 0 {
		out = append(out, "clock_floor", uint64(e.ClockFloor))
	}
	if e.Log != nil {
		out = append(out, "log_from_segment", e.Log.FirstSegment)
	}
	var tables, added []string
	for _, t := range e.Tables {
		tables = append(tables, t.Name)
	}
	for _, r := range e.AddRowSets {
		added = append(added, fmt.Sprintf("%d (%d rows)", r.Meta.ID, r.Meta.Rows))
	}
	add("tables", len(tables), strings.Join(tables, ", "))
	add("add_tablets", len(e.AddTablets), len(e.AddTablets))
	for _, u := range e.UpdateTablets {
		out = append(out, fmt.Sprintf("tablet_%d_flushed_to", u.ID), uint64(u.Watermarks.FlushedTo))
		if u.Horizon > 0 {
			out = append(out, fmt.Sprintf("tablet_%d_horizon", u.ID), uint64(u.Horizon))
		}
	}
	add("add_rowsets", len(added), strings.Join(added, ", "))
	add("update_rowsets", len(e.UpdateRowSets), len(e.UpdateRowSets))
	add("remove_rowsets", len(e.RemoveRowSets), len(e.RemoveRowSets))
	add("add_files", len(e.AddFiles), len(e.AddFiles))
	add("remove_files", len(e.RemoveFiles), len(e.RemoveFiles))
	add("remove_tablets", len(e.RemoveTablets), len(e.RemoveTablets))
	add("remove_tables", len(e.RemoveTables), len(e.RemoveTables))
	for _, p := range e.Pins {
		out = append(out, "pin", fmt.Sprintf("%s at %d", p.Name, p.Time))
	}
	add("unpin", len(e.RemovePins), strings.Join(e.RemovePins, ", "))
	return out
}

// log prints the frames of a log segment.
func (d *dumper) log(ctx context.Context) error {
	return wal.Dump(ctx, d.fs, d.path, func(f wal.FrameInfo) error {
		details := []any{"part", f.Part, "timestamp", uint64(f.Timestamp), "synced_through", f.Synced.String()}
		if f.Part == "whole" && f.Type == wal.TypeBatch {
			details = append(details, recordDetails(f.Payload)...)
		}
		return d.part(f.Kind, f.Offset, f.Length, details...)
	})
}

// recordDetails lists the tablets that a record writes to.
func recordDetails(payload []byte) []any {
	parts, err := record.Decode(payload)
	if err != nil {
		return []any{"damage", err.Error()}
	}
	var list []string
	for _, p := range parts {
		for _, sec := range p.Sections {
			list = append(list, fmt.Sprintf("%d (%d rows)", p.Tablet, sec.Rows))
		}
	}
	return []any{"tablets", strings.Join(list, ", ")}
}
