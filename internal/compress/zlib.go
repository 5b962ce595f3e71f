package compress

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// zlibWriter is a pooled encoder and the buffer it appends to.
type zlibWriter struct {
	z   *zlib.Writer
	out appender
}

type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

var zlibWriters = sync.Pool{New: func() any {
	w := &zlibWriter{}
	w.z = zlib.NewWriter(&w.out)
	return w
}}

func appendZlib(dst, src []byte) ([]byte, error) {
	w := zlibWriters.Get().(*zlibWriter)
	defer zlibWriters.Put(w)
	w.out.b = dst
	w.z.Reset(&w.out)
	_, err := w.z.Write(src)
	if err == nil {
		err = w.z.Close()
	}
	dst, w.out.b = w.out.b, nil
	return dst, err
}

// zlibReader is a pooled decoder and the source it reads.
type zlibReader struct {
	z    io.ReadCloser // nil until a first valid header was seen
	src  bytes.Reader
	over [1]byte
}

var zlibReaders = sync.Pool{New: func() any { return new(zlibReader) }}

func decodeZlib(dst, src []byte) error {
	r := zlibReaders.Get().(*zlibReader)
	defer zlibReaders.Put(r)
	r.src.Reset(src)
	err := r.read(dst)
	r.src.Reset(nil)
	return err
}

func (r *zlibReader) read(dst []byte) error {
	if err := r.open(); err != nil {
		return damaged("zlib: %v", err)
	}
	if _, err := io.ReadFull(r.z, dst); err != nil {
		return damaged("zlib: %v", err)
	}
	switch n, err := r.z.Read(r.over[:]); {
	case n != 0:
		return damaged("zlib: more than %d bytes", len(dst))
	case err != io.EOF:
		return damaged("zlib: %v", err)
	}
	if r.src.Len() != 0 {
		return damaged("zlib: %d bytes after the end of the stream", r.src.Len())
	}
	return nil
}

func (r *zlibReader) open() (err error) {
	if r.z == nil {
		r.z, err = zlib.NewReader(&r.src)
		return err
	}
	return r.z.(zlib.Resetter).Reset(&r.src, nil)
}
