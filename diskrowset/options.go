package diskrowset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/encoding"
	"github.com/minikudu/minikudu/internal/binfmt"
	"github.com/minikudu/minikudu/internal/cache"
	"github.com/minikudu/minikudu/internal/filecache"
	"github.com/minikudu/minikudu/internal/mvcc"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

// Pages is the page cache: column pages, key indexes and key filters.
type Pages = cache.Cache[cache.Page]

// Env is what the rowsets of a tablet share.
type Env struct {
	FS      vfs.FS
	Files   *filecache.Cache
	Pages   *Pages
	Dir     string // of the rowset files
	StoreID binfmt.UUID
	Schema  *schema.Schema

	path string // of the only file, when it is opened without a store
}

// DefaultTargetBytes is the size at which a rowset file is closed.
const DefaultTargetBytes = 32 << 20

// maxRows bounds the rows of a rowset, so that its key index stays small and a row
// number fits an int everywhere.
const maxRows = 1 << 26

// WriterOptions say how Write makes rowset files.
type WriterOptions struct {
	FS            vfs.FS
	Dir           string // of the rowset files
	StoreID       binfmt.UUID
	Schema        *schema.Schema
	SchemaVersion uint32
	// NewFile returns the number of the next file.
	NewFile func() rowset.FileNum
	// TargetBytes is the size at which a file is closed; 0 means DefaultTargetBytes.
	TargetBytes int64
	// NoFilters leaves the key filters out.
	NoFilters bool
	// KuduCompatible writes only encodings that Kudu reads.
	KuduCompatible bool
	// Horizon is the time below which insert times are stored as 0 (R8).
	Horizon mvcc.Timestamp
	// Habits remember how columns are encoded, from one call to the next; nil: nothing does.
	Habits *Habits
	// Workers returns how many goroutines may make parts of a file now; it is asked before
	// each part. nil: as many as there are processors.
	Workers func() int
	// Throttle is called before n bytes are written and may wait; its error ends the
	// write. nil: writes do not wait.
	Throttle func(ctx context.Context, n int) error
}

// throttle returns what an output calls before it writes n bytes, nil for nothing.
func (o *WriterOptions) throttle(ctx context.Context) func(n int) error {
	if o.Throttle == nil {
		return nil
	}
	return func(n int) error { return o.Throttle(ctx, n) }
}

func (o WriterOptions) withDefaults() WriterOptions {
	if o.TargetBytes <= 0 {
		o.TargetBytes = DefaultTargetBytes
	}
	if o.Workers == nil {
		o.Workers = func() int { return runtime.GOMAXPROCS(0) }
	}
	return o
}

// column returns how schema column i is written. A column without an encoding and a codec
// of its own is written page by page as suits the page.
func (o *WriterOptions) column(i int) cfile.WriterOptions {
	c := o.Schema.Column(i)
	w := cfile.WriterOptions{Column: c.Name, Type: c.Type, Nullable: c.Nullable, Encoding: c.Encoding,
		Compression: c.Compression, BlockSize: c.BlockSize, ValueIndex: i == 0 && o.Schema.NumKey() == 1}
	if !o.KuduCompatible && c.Encoding == schema.EncodingAuto && c.Compression == schema.CompressionDefault {
		w.Encoding, w.Habit = schema.EncodingPaged, o.Habits.of(c.ID)
	}
	return w
}

// Habits are the [encoding.Habit] of each column of a table. The zero value is ready.
type Habits struct {
	mu      sync.Mutex
	columns map[schema.ColumnID]*encoding.Habit
}

// insertTimes stands for the column of insert times.
const insertTimes schema.ColumnID = -1

// of returns the habit of a column; nil when there are none.
func (h *Habits) of(id schema.ColumnID) *encoding.Habit {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.columns == nil {
		h.columns = map[schema.ColumnID]*encoding.Habit{}
	}
	if h.columns[id] == nil {
		h.columns[id] = new(encoding.Habit)
	}
	return h.columns[id]
}

// numbers returns how numbers beside the columns are written.
func (o *WriterOptions) numbers(name string, typ schema.Type) cfile.WriterOptions {
	w := cfile.WriterOptions{Column: name, Type: typ, Encoding: schema.EncodingPaged, NoZones: true}
	if o.KuduCompatible {
		w.Encoding = schema.EncodingBitShuffle
	}
	return w
}

// limit is the size no file may exceed: the target and a tenth.
func (o *WriterOptions) limit() int64 {
	if o.TargetBytes > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return o.TargetBytes + o.TargetBytes/10
}

// Written is a rowset that Write made: a file, and files of changes where the rows have
// history. They are synced; their directory entries are not.
type Written struct {
	// Meta describes the rowset; ID and DurableTo are the caller's to set.
	Meta     *rowset.Meta
	File     rowset.FileNum
	Size     int64
	Checksum uint32 // CRC-32C of the whole file
	Deltas   []WrittenDelta
}

// Remove deletes the files.
func (w *Written) Remove(o WriterOptions) error {
	err := o.FS.Remove(o.FS.Join(o.Dir, FileName(w.File)))
	for i := range w.Deltas {
		err = errors.Join(err, o.FS.Remove(o.FS.Join(o.Dir, DeltaName(w.Deltas[i].File))))
	}
	return err
}

// Bytes returns the size of all files.
func (w *Written) Bytes() int64 {
	n := w.Size
	for i := range w.Deltas {
		n += w.Deltas[i].Size
	}
	return n
}

const (
	fileSuffix  = ".rowset"
	deltaSuffix = ".delta"
)

// FileName returns the name of a rowset file.
func FileName(n rowset.FileNum) string { return fmt.Sprintf("%010d%s", uint64(n), fileSuffix) }

// ParseFileName returns the number in the name of a rowset file, and false for any
// other name.
func ParseFileName(name string) (rowset.FileNum, bool) {
	var n uint64
	if _, err := fmt.Sscanf(name, "%d"+fileSuffix, &n); err != nil || FileName(rowset.FileNum(n)) != name {
		return 0, false
	}
	return rowset.FileNum(n), true
}

// DeltaName returns the name of a file of changes.
func DeltaName(n rowset.FileNum) string { return fmt.Sprintf("%010d%s", uint64(n), deltaSuffix) }

// ParseDeltaName returns the number in the name of a file of changes, and false for any
// other name.
func ParseDeltaName(name string) (rowset.FileNum, bool) {
	var n uint64
	if _, err := fmt.Sscanf(name, "%d"+deltaSuffix, &n); err != nil || DeltaName(rowset.FileNum(n)) != name {
		return 0, false
	}
	return rowset.FileNum(n), true
}
