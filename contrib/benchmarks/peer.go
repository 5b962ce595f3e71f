package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errCannot is returned by a peer for what it has no means to do. The tables show "-".
var errCannot = errors.New("not supported")

// Setup is what a peer is opened with.
type Setup struct {
	Dir    string
	Table  *Table
	Create bool  // the directory is empty: make the table
	Splits []Row // keys that cut the table in parts of about the same number of rows
	Cache  int64 // bytes of cache or memory budget, where a peer has such a setting
	Group  int   // rows of a row group of a Parquet file, the work of a thread that scans
}

// Peer is a store under test. Get, GetColumns, Scan and Range may be called by several
// goroutines; the rest by one, with no other call in progress.
type Peer interface {
	// Open opens the store.
	Open(s *Setup) error
	// Load inserts rows. A peer with a key makes them durable before it returns; one
	// that writes files makes them so in Close.
	Load(b *Batch) error
	// Settle does the work that the peer has put off, such as compaction.
	Settle() error
	// Get reads the whole row with the key into row.
	Get(key, row Row) (found bool, err error)
	// GetColumns reads some columns of the row with the key into row.
	GetColumns(key Row, columns []int, row Row) (found bool, err error)
	// Scan runs the query on so many threads.
	Scan(s *Scan, threads int) (Answer, error)
	// Range reads a range of keys.
	Range(r *Range) (Answer, error)
	// Update sets an integer column of the rows with the keys, durably.
	Update(keys []Row, column int, values []int64) error
	// Close closes the store.
	Close() error
}

// rowSetter is a peer that can say of how many rowsets its table consists.
type rowSetter interface{ rowSets() (int, error) }

// Info describes a peer and how it is set up.
type Info struct {
	Name     string
	Family   string // peers of one family differ in their settings
	Codec    string // for the charts by codec; "" to be left out of them
	Settings string
	Keyed    bool // takes rows one batch at a time, durably, by key
	ReadOnly bool // loaded without being measured
	Quick    bool // takes part in a quick run
	Parquet  bool
	Rows     bool // a store of rows, not columns
	New      func() Peer
}

// peers returns all peers in the order in which the tables show them.
func peers() []Info {
	var all []Info
	for _, group := range [][]Info{minikuduPeers(), duckdbPeers(), pebblePeers(), badgerPeers(), sqlitePeers(), bboltPeers(),
		parquetgoPeers(), arrowPeers(), avroPeers()} {
		all = append(all, group...)
	}
	return all
}

func peerNamed(name string) (Info, bool) {
	for _, p := range peers() {
		if p.Name == name {
			return p, true
		}
	}
	return Info{}, false
}

// sizeOf returns the bytes of all files below dir: of a sparse file those that are
// allocated.
func sizeOf(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			size = min(size, st.Blocks*512)
		}
		total += size
		return nil
	})
	return total, err
}

// syncFile makes a file that was written durable, with its directory entry.
func syncFile(path string) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
