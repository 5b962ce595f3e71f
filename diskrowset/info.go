package diskrowset

import (
	"context"
	"strconv"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// ColumnInfo says what a column of a rowset takes on disk.
type ColumnInfo struct {
	Column      *schema.Column
	Stored      bool // false: added after the rowset was written, the rest is zero
	Encoding    schema.Encoding
	Compression schema.Compression
	Pages       int
	Encodings   []cfile.PageEncoding // of the pages
	Bytes       int64                // of the column file
	PlainBytes  int64                // of the cells before encoding; 0: unknown
}

// Columns describes the columns of the rowset's schema. It reads footers and indexes.
func (s *RowSet) Columns(ctx context.Context) ([]ColumnInfo, error) {
	if !s.Acquire() {
		return nil, ErrClosed
	}
	defer s.Release()
	out := make([]ColumnInfo, len(s.columns))
	for i, c := range s.columns {
		out[i].Column = s.env.Schema.Column(i)
		if c == nil {
			continue
		}
		d, err := c.open(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = ColumnInfo{Column: out[i].Column, Stored: true, Encoding: d.reader.Encoding(),
			Compression: d.reader.Compression(), Pages: d.index.Pages(), Bytes: c.section.Length}
		if out[i].Encodings, err = d.reader.PageEncodings(d.index); err != nil {
			return nil, err
		}
		if b, ok := d.reader.Metadata(plainBytesKey); ok {
			out[i].PlainBytes, _ = strconv.ParseInt(string(b), 10, 64)
		}
	}
	return out, nil
}

// Walk calls fn for every block of a section that is a column file; Offsets are in the
// file. Other sections have no blocks.
func (s *RowSet) Walk(ctx context.Context, sec rowset.Section, fn func(cfile.BlockInfo) error) error {
	if !s.Acquire() {
		return ErrClosed
	}
	defer s.Release()
	for _, c := range append([]*column{s.times, s.index}, s.columns...) {
		if c == nil || c.section != sec {
			continue
		}
		d, err := c.open(ctx)
		if err != nil {
			return err
		}
		return d.reader.Walk(ctx, fn)
	}
	return nil
}

// OpenFile opens the rowset in a file by the file's own directory, for dump and verify
// of a file without its store. The rowset has the columns it was written with.
func OpenFile(ctx context.Context, fs vfs.FS, files *filecache.Cache, pages *Pages, path string) (*RowSet, *Directory, error) {
	h := files.Handle(path, vfs.KindRowSet)
	defer h.Release()
	size, err := h.Size(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, err := ReadDirectory(ctx, h, size, path)
	if err != nil {
		return nil, nil, err
	}
	sch, err := d.Schema()
	if err != nil {
		return nil, nil, damage(path, "directory", 0, size, err)
	}
	s, err := Open(d.Meta(), Env{FS: fs, Files: files, Pages: pages, StoreID: d.Header.Store, Schema: sch, path: path})
	if err != nil {
		return nil, nil, damage(path, "directory", 0, size, err)
	}
	return s, d, nil
}

// DeltaEntries returns the number of changes that are not flushed.
func (s *RowSet) DeltaEntries() (n int64) {
	for _, m := range s.deltas.Load().memStores() {
		n += m.Entries()
	}
	return n
}
