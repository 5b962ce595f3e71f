package main

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

func badgerPeers() []Info {
	peer := func(codec string, c options.CompressionType) Info {
		return Info{Name: "badger-" + codec, Family: "badger", Codec: codec, Keyed: true, Rows: true, Quick: codec == "snappy",
			Settings: "SyncWrites, block cache of the budget, " + codec,
			New:      func() Peer { return &badgerPeer{codec: c} }}
	}
	return []Info{peer("none", options.None), peer("snappy", options.Snappy), peer("zstd", options.ZSTD)}
}

// badgerPeer keeps a row as one value.
type badgerPeer struct {
	codec options.CompressionType
	setup *Setup
	table *Table
	db    *badger.DB
}

func (p *badgerPeer) Open(s *Setup) error {
	p.setup, p.table = s, s.Table
	o := badger.DefaultOptions(s.Dir).WithSyncWrites(true).WithCompression(p.codec).WithZSTDCompressionLevel(3).
		WithBlockCacheSize(s.Cache).WithLogger(silent{}).WithMetricsEnabled(false)
	var err error
	p.db, err = badger.Open(o)
	return err
}

// Load writes through transactions: one for a batch, unless badger says that it is too
// large, and then as few as it allows.
func (p *badgerPeer) Load(b *Batch) error {
	return p.write(b.Len, func(row int) (key, value []byte, err error) {
		return appendBatchKey(nil, p.table, b, row), appendBatchValue(nil, p.table, b, row), nil
	})
}

func (p *badgerPeer) write(n int, entry func(i int) (key, value []byte, err error)) error {
	txn := p.db.NewTransaction(true)
	defer func() { txn.Discard() }()
	for i := range n {
		key, value, err := entry(i)
		if err != nil {
			return err
		}
		err = txn.Set(key, value)
		if errors.Is(err, badger.ErrTxnTooBig) {
			if err := txn.Commit(); err != nil {
				return err
			}
			txn = p.db.NewTransaction(true)
			err = txn.Set(key, value)
		}
		if err != nil {
			return err
		}
	}
	return txn.Commit()
}

func (p *badgerPeer) Settle() error {
	if err := p.db.Flatten(2); err != nil {
		return err
	}
	for {
		err := p.db.RunValueLogGC(0.5)
		if errors.Is(err, badger.ErrNoRewrite) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *badgerPeer) with(key Row, fn func(value []byte) error) (bool, error) {
	txn := p.db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(appendKey(nil, p.table, key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, item.Value(fn)
}

func (p *badgerPeer) Get(key, row Row) (bool, error) {
	return p.with(key, func(value []byte) error { return pickAll(p.table, key, value, row) })
}

func (p *badgerPeer) GetColumns(key Row, columns []int, row Row) (bool, error) {
	return p.with(key, func(value []byte) error { return pick(p.table, key, value, columns, row) })
}

func (p *badgerPeer) Scan(s *Scan, threads int) (Answer, error) {
	return together(parts(p.table, p.setup.Splits, threads), func(part [2][]byte) (Answer, error) {
		return p.scan(s, part[0], part[1])
	})
}

func (p *badgerPeer) scan(s *Scan, from, to []byte) (Answer, error) {
	txn := p.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.DefaultIteratorOptions)
	defer it.Close()
	r := rowScan{table: p.table, scan: s}
	for it.Seek(from); it.Valid(); it.Next() {
		item := it.Item()
		if to != nil && string(item.Key()) >= string(to) {
			break
		}
		if err := item.Value(func(value []byte) error { return r.add(item.Key(), value) }); err != nil {
			return Answer{}, err
		}
	}
	return r.answer, nil
}

func (p *badgerPeer) Range(r *Range) (Answer, error) {
	from, to := r.bounds()
	return p.scan(&Scan{Op: All, Sum: r.Sum}, appendKey(nil, p.table, from), appendKey(nil, p.table, to))
}

func (p *badgerPeer) Update(keys []Row, column int, values []int64) error {
	return p.write(len(keys), func(i int) (key, value []byte, err error) {
		found, err := p.with(keys[i], func(old []byte) (err error) {
			value, err = replaceInt(nil, p.table, old, column, values[i])
			return err
		})
		if err == nil {
			err = missing(found)
		}
		return appendKey(nil, p.table, keys[i]), value, err
	})
}

func (p *badgerPeer) Close() error { return p.db.Close() }
