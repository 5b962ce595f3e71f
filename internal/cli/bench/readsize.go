package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vfs"
)

const (
	readCell  = 4 << 10   // bytes of a row of the table that is read
	readTotal = 128 << 20 // bytes of the file and of the table's column
	readRows  = readTotal / readCell
	readLeast = 3 // reads of each size, however long they take
	// ReadSizeTable is the table that ReadSizes makes.
	ReadSizeTable = "bench_readsize"
)

// ReadSize is what reads of one size reached, all threads together. MB are 10^6 bytes.
type ReadSize struct {
	Op        string  `json:"op"`
	Threads   int     `json:"threads"`
	Bytes     int64   `json:"bytes"`
	FileReads int64   `json:"file_reads"`
	FileRate  float64 `json:"file_mb_per_s"`
	ScanReads int64   `json:"scan_reads"`
	ScanRate  float64 `json:"scan_mb_per_s"`
	CacheHits float64 `json:"cache_hits"` // share of pages that scans found in the page cache
}

// readSizes are the sizes that are read.
var readSizes = []int64{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 100 << 20}

// ReadSizes measures reads at random places, of 4 KiB to 100 MiB, each size for at most
// the given time: from a file in the directory of the store, and as scans over ranges of
// keys of a table, which it makes unless it is there. found receives the results.
func ReadSizes(ctx context.Context, db *minikudu.DB, threads int, limit time.Duration, found func(*ReadSize) error) (err error) {
	table, err := readTable(ctx, db)
	if err != nil {
		return err
	}
	name := vfs.OS.Join(db.Dir(), "bench-readsize.tmp")
	defer func() { err = errors.Join(err, removeFile(name)) }()
	file, err := writeFile(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, size := range readSizes {
		res := &ReadSize{Op: "readsize", Threads: threads, Bytes: size}
		if res.FileReads, res.FileRate, err = readFor(ctx, threads, size, limit, fileReader(file, size)); err != nil {
			return err
		}
		before := db.Metrics().PageCache
		if res.ScanReads, res.ScanRate, err = readFor(ctx, threads, size, limit, scanReader(table, size)); err != nil {
			return err
		}
		after := db.Metrics().PageCache
		hits, misses := after.Hits-before.Hits, after.Misses-before.Misses
		res.CacheHits = round(float64(hits)/float64(max(hits+misses, 1)), 3)
		if err := found(res); err != nil {
			return err
		}
	}
	return nil
}

func removeFile(name string) error {
	if err := vfs.OS.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeFile makes the file that is read.
func writeFile(ctx context.Context, name string) (vfs.File, error) {
	if err := removeFile(name); err != nil { // of a run that was killed
		return nil, err
	}
	file, err := vfs.OS.Create(name, vfs.KindOther)
	if err != nil {
		return nil, err
	}
	part := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{6})
	for at := int64(0); at < readTotal && err == nil; at += int64(len(part)) {
		_, _ = random.Read(part) // which cannot fail
		if _, err = file.WriteAt(part, at); err == nil {
			err = ctx.Err()
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readTable returns the table that is read, in column files.
func readTable(ctx context.Context, db *minikudu.DB) (*minikudu.Table, error) {
	table, err := db.Table(ReadSizeTable)
	if errors.Is(err, minikudu.ErrNotFound) {
		table, err = db.CreateTable(ctx, ReadSizeTable, minikudu.TableSpec{Key: []string{"id"}, Columns: []minikudu.Column{
			column("id", schema.Int64), {Name: "data", Type: schema.Binary, Encoding: schema.EncodingPlain, Compression: schema.CompressionNone}}})
	}
	if err != nil {
		return nil, err
	}
	if err := fillReadTable(ctx, db, table); err != nil {
		return nil, fmt.Errorf("filling the table: %w", err)
	}
	return table, table.Flush(ctx)
}

// fillReadTable inserts the rows that are not there, in batches that the smallest memory
// budget admits.
func fillReadTable(ctx context.Context, db *minikudu.DB, table *minikudu.Table) error {
	cell := make([]byte, readCell)
	random := rand.NewChaCha8([32]byte{7})
	var b minikudu.WriteBatch
	for id := table.Rows(); id < readRows; {
		b.Reset()
		for n := 0; n < 256 && id < readRows; n++ {
			_, _ = random.Read(cell)
			b.Insert(table, id, cell)
			id++
		}
		if _, err := db.Commit(ctx, &b, nil); err != nil {
			return err
		}
	}
	return nil
}

// reader reads once, at a place that r chooses. It belongs to one thread.
type reader func(ctx context.Context, r *rand.Rand) error

// readFor reads on all threads until the limit and returns the number of reads and the
// MB read in a second.
func readFor(ctx context.Context, threads int, size int64, limit time.Duration, open func() reader) (int64, float64, error) {
	readers := make([]reader, threads)
	for i := range readers {
		readers[i] = open()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reads atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i, read := range readers {
		wg.Go(func() {
			r := seeded(8, int64(i))
			for n := 0; ctx.Err() == nil && (n < readLeast || time.Since(begin) < limit); n++ {
				if err := read(ctx, r); err != nil {
					cancel(err)
				}
				reads.Add(1)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begin).Seconds()
	return reads.Load(), round(float64(reads.Load()*size)/1e6/elapsed, 1), context.Cause(ctx)
}

// place returns the number of a cell at which a read of the size can begin.
func place(r *rand.Rand, size int64) int64 { return r.Int64N(readRows - size/readCell + 1) }

// fileReader reads from the file into memory that is used again.
func fileReader(file vfs.File, size int64) func() reader {
	return func() reader {
		buf := make([]byte, size)
		return func(ctx context.Context, r *rand.Rand) error {
			_, err := file.ReadAtContext(ctx, buf, place(r, size)*readCell)
			return err
		}
	}
}

// scanReader reads the column of a range of keys and copies the cells, as a read of a file
// does: a batch may be a view of pages in the cache.
func scanReader(table *minikudu.Table, size int64) func() reader {
	return func() reader {
		buf := make([]byte, size)
		return func(ctx context.Context, r *rand.Rand) error {
			from := place(r, size)
			where := predicate.And(predicate.Ge("id", from), predicate.Lt("id", from+size/readCell))
			got := int64(0)
			for b, err := range table.Scan(ctx, minikudu.Query{Columns: []string{"data"}, Where: where}) {
				if err != nil {
					return err
				}
				for i := range b.Len() {
					got += int64(copy(buf[got:], b.Column(0).BytesAt(i)))
				}
			}
			if got != size {
				return fmt.Errorf("a scan from key %d found %d bytes instead of %d", from, got, size)
			}
			return nil
		}
	}
}
