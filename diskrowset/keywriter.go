package diskrowset

import (
	"bytes"
	"fmt"

	"github.com/minikudu/minikudu/cfile"
	"github.com/minikudu/minikudu/internal/rowset"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

// keyIndexBlock is the page size of the key index.
const keyIndexBlock = 32 << 10

// keyWriter makes what a file knows of its keys: bounds, filters, index.
type keyWriter struct {
	w       *fileWriter
	part    *part
	filters *filterWriter // nil: none
	index   *cfile.Writer // nil: the key has a single column
	encoded chunks        // the index
	sampled vector.Vector
	rows    int
	last    []byte
}

func newKeyWriter(w *fileWriter, p *part) (*keyWriter, error) {
	k := &keyWriter{w: w, part: p}
	if !w.o.NoFilters {
		k.filters = newFilterWriter(&p.buf, w.to-w.from)
	}
	if w.o.Schema.NumKey() == 1 {
		return k, nil
	}
	var err error
	k.index, err = cfile.NewWriter(&k.encoded, cfile.WriterOptions{Column: "key index", Type: schema.Binary,
		Encoding: schema.EncodingPrefix, Compression: schema.CompressionLZ4, BlockSize: keyIndexBlock, NoZones: true})
	return k, err
}

// add takes the keys of the next rows.
func (k *keyWriter) add(keys *vector.Vector) error {
	if err := k.ordered(keys); err != nil {
		return err
	}
	if k.filters != nil {
		if err := k.filters.add(keys); err != nil {
			return err
		}
	}
	first := (rowsPerRun - k.rows%rowsPerRun) % rowsPerRun
	k.rows += keys.Len()
	if k.index == nil {
		return nil
	}
	k.sampled.Reset(schema.KindBytes)
	for i := first; i < keys.Len(); i += rowsPerRun {
		if err := k.sampled.AppendBytes(keys.BytesAt(i)); err != nil {
			return err
		}
	}
	return k.index.Append(&k.sampled)
}

// ordered checks that the keys ascend and notes the first and last.
func (k *keyWriter) ordered(keys *vector.Vector) error {
	for i := range keys.Len() {
		key := keys.BytesAt(i)
		switch {
		case k.rows == 0 && i == 0:
			k.w.meta.MinKey = bytes.Clone(key)
		case i == 0 && bytes.Compare(k.last, key) >= 0, i > 0 && bytes.Compare(keys.BytesAt(i-1), key) >= 0:
			return fmt.Errorf("keys of rows %d and %d do not ascend", k.rows+i-1, k.rows+i)
		}
	}
	k.last = append(k.last[:0], keys.BytesAt(keys.Len()-1)...)
	return nil
}

// finish adds what is left and notes the sections: filters, then the index.
func (k *keyWriter) finish() error {
	k.w.meta.MaxKey = bytes.Clone(k.last)
	if k.filters != nil {
		if err := k.filters.finish(); err != nil {
			return err
		}
		k.part.section(k.w.num, rowset.SectionFilters, -1, 0)
	}
	if k.index == nil {
		return nil
	}
	if _, err := k.index.Finish(); err != nil {
		return err
	}
	at := int64(k.part.buf.Len())
	if err := k.encoded.moveTo(&k.part.buf); err != nil {
		return err
	}
	k.part.section(k.w.num, rowset.SectionKeyIndex, -1, at)
	return nil
}
