package main

import (
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

func bboltPeers() []Info {
	return []Info{{Name: "bbolt", Family: "bbolt", Rows: true, ReadOnly: true, Quick: true,
		Settings: "reads only: loaded without syncs, not measured", New: func() Peer { return &bboltPeer{} }}}
}

// bboltPeer keeps a row as one value of a B+ tree. It is there for its reads.
type bboltPeer struct {
	setup *Setup
	table *Table
	db    *bolt.DB
}

var bboltBucket = []byte("rows")

func (p *bboltPeer) Open(s *Setup) error {
	p.setup, p.table = s, s.Table
	var err error
	p.db, err = bolt.Open(filepath.Join(s.Dir, "store.bbolt"), 0o666, &bolt.Options{NoSync: s.Create, NoFreelistSync: s.Create})
	if err != nil || !s.Create {
		return err
	}
	return p.db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket(bboltBucket)
		return err
	})
}

func (p *bboltPeer) Load(b *Batch) error {
	return p.db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(bboltBucket)
		for row := range b.Len {
			if err := bucket.Put(appendBatchKey(nil, p.table, b, row), appendBatchValue(nil, p.table, b, row)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *bboltPeer) Settle() error { return p.db.Sync() }

func (p *bboltPeer) with(key Row, fn func(value []byte) error) (found bool, err error) {
	err = p.db.View(func(tx *bolt.Tx) error {
		value := tx.Bucket(bboltBucket).Get(appendKey(nil, p.table, key))
		if value == nil {
			return nil
		}
		found = true
		return fn(value)
	})
	return found, err
}

func (p *bboltPeer) Get(key, row Row) (bool, error) {
	return p.with(key, func(value []byte) error { return pickAll(p.table, key, value, row) })
}

func (p *bboltPeer) GetColumns(key Row, columns []int, row Row) (bool, error) {
	return p.with(key, func(value []byte) error { return pick(p.table, key, value, columns, row) })
}

func (p *bboltPeer) Scan(s *Scan, threads int) (Answer, error) {
	return together(parts(p.table, p.setup.Splits, threads), func(part [2][]byte) (Answer, error) {
		return p.scan(s, part[0], part[1])
	})
}

func (p *bboltPeer) scan(s *Scan, from, to []byte) (Answer, error) {
	r := rowScan{table: p.table, scan: s}
	err := p.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bboltBucket).Cursor()
		for key, value := c.Seek(from); key != nil && (to == nil || string(key) < string(to)); key, value = c.Next() {
			if err := r.add(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	return r.answer, err
}

func (p *bboltPeer) Range(r *Range) (Answer, error) {
	from, to := r.bounds()
	return p.scan(&Scan{Op: All, Sum: r.Sum}, appendKey(nil, p.table, from), appendKey(nil, p.table, to))
}

func (p *bboltPeer) Update([]Row, int, []int64) error { return errCannot }

func (p *bboltPeer) Close() error { return p.db.Close() }
