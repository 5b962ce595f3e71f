package main

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

func pebblePeers() []Info {
	peer := func(codec string, profile *block.CompressionProfile) Info {
		return Info{Name: "pebble-" + codec, Family: "pebble", Codec: codec, Keyed: true, Rows: true, Quick: codec == "snappy",
			Settings: "Sync, block cache of the budget, Bloom filters of 10 bits a key, " + codec,
			New:      func() Peer { return &pebblePeer{profile: profile} }}
	}
	return []Info{peer("none", block.NoCompression), peer("snappy", block.SnappyCompression), peer("zstd", block.ZstdCompression)}
}

// pebblePeer keeps a row as one value.
type pebblePeer struct {
	profile *block.CompressionProfile
	setup   *Setup
	table   *Table
	db      *pebble.DB
	cache   *pebble.Cache
	key     []byte
	value   []byte
}

func (p *pebblePeer) Open(s *Setup) error {
	p.setup, p.table = s, s.Table
	p.cache = pebble.NewCache(s.Cache)
	o := &pebble.Options{Cache: p.cache, Logger: silent{}, FormatMajorVersion: pebble.FormatNewest}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *block.CompressionProfile { return p.profile }
	}
	var err error
	p.db, err = pebble.Open(s.Dir, o)
	return err
}

// silent drops the messages of a store.
type silent struct{}

func (silent) Infof(string, ...any)    {}
func (silent) Errorf(string, ...any)   {}
func (silent) Warningf(string, ...any) {}
func (silent) Debugf(string, ...any)   {}
func (silent) Fatalf(f string, _ ...any) {
	panic(f)
}

func (p *pebblePeer) Load(b *Batch) error {
	wb := p.db.NewBatch()
	defer wb.Close()
	for row := range b.Len {
		p.key = appendBatchKey(p.key[:0], p.table, b, row)
		p.value = appendBatchValue(p.value[:0], p.table, b, row)
		if err := wb.Set(p.key, p.value, nil); err != nil {
			return err
		}
	}
	return wb.Commit(pebble.Sync)
}

func (p *pebblePeer) Settle() error {
	if err := p.db.Flush(); err != nil {
		return err
	}
	return p.db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, true)
}

// with calls fn with the value of a key, which is valid until fn returns.
func (p *pebblePeer) with(key Row, fn func(value []byte) error) (bool, error) {
	var buf [64]byte
	value, closer, err := p.db.Get(appendKey(buf[:0], p.table, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(fn(value), closer.Close())
}

func (p *pebblePeer) Get(key, row Row) (bool, error) {
	return p.with(key, func(value []byte) error { return pickAll(p.table, key, value, row) })
}

func (p *pebblePeer) GetColumns(key Row, columns []int, row Row) (bool, error) {
	return p.with(key, func(value []byte) error { return pick(p.table, key, value, columns, row) })
}

func (p *pebblePeer) Scan(s *Scan, threads int) (Answer, error) {
	return together(parts(p.table, p.setup.Splits, threads), func(part [2][]byte) (Answer, error) {
		return p.scan(s, part[0], part[1])
	})
}

func (p *pebblePeer) scan(s *Scan, from, to []byte) (Answer, error) {
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return Answer{}, err
	}
	r := rowScan{table: p.table, scan: s}
	for it.First(); it.Valid() && err == nil; it.Next() {
		err = r.add(it.Key(), it.Value())
	}
	return r.answer, errors.Join(err, it.Error(), it.Close())
}

func (p *pebblePeer) Range(r *Range) (Answer, error) {
	from, to := r.bounds()
	return p.scan(&Scan{Op: All, Sum: r.Sum}, appendKey(nil, p.table, from), appendKey(nil, p.table, to))
}

func (p *pebblePeer) Update(keys []Row, column int, values []int64) error {
	wb := p.db.NewBatch()
	defer wb.Close()
	for i, key := range keys {
		found, err := p.with(key, func(value []byte) (err error) {
			p.value, err = replaceInt(p.value[:0], p.table, value, column, values[i])
			return err
		})
		if err != nil || !found {
			return errors.Join(err, missing(found))
		}
		p.key = appendKey(p.key[:0], p.table, key)
		if err := wb.Set(p.key, p.value, nil); err != nil {
			return err
		}
	}
	return wb.Commit(pebble.Sync)
}

var errMissing = errors.New("row to be updated is missing")

func missing(found bool) error {
	if found {
		return nil
	}
	return errMissing
}

func (p *pebblePeer) Close() error {
	err := p.db.Close()
	p.cache.Unref()
	return err
}
