package compress

import (
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The options are constant and valid, so an error is a bug of ours. Neither kind starts a
// goroutine for whole-block calls; the collector drops idle ones.
var (
	zstdEncoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(fmt.Sprintf("compress: zstd encoder: %v", err))
		}
		return e
	}}
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxMemory(MaxPlain), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(fmt.Sprintf("compress: zstd decoder: %v", err))
		}
		return d
	}}
)

func appendZstd(dst, src []byte) ([]byte, error) {
	e := zstdEncoders.Get().(*zstd.Encoder)
	defer zstdEncoders.Put(e)
	return e.EncodeAll(src, slices.Grow(dst, len(src)/2)), nil
}

func decodeZstd(dst, src []byte) error {
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return damaged("zstd: %v", err)
	}
	if len(out) != len(dst) {
		return damaged("zstd: decodes to %d bytes, want %d", len(out), len(dst))
	}
	return nil
}
