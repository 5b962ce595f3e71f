package compress

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// One of each kind serves all goroutines, as many at a time as there are processors. They are
// made, and the encoders are put to use once, when the program starts: they hand their state
// around in channels, which would otherwise belong to the synctest bubble of whoever comes
// first. Memory that is not used yet is not resident.
var (
	zstdEncoder = newZstdEncoder(zstd.SpeedDefault)
	zstdFastest = newZstdEncoder(zstd.SpeedFastest)
	zstdDecoder = newZstdDecoder()
)

// The options are constant and valid, so an error is a bug of ours. Neither kind starts a
// goroutine for whole-block calls.
func newZstdEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(fmt.Sprintf("compress: zstd encoder: %v", err))
	}
	e.EncodeAll([]byte{0}, nil)
	return e
}

func newZstdDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(MaxPlain), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(fmt.Sprintf("compress: zstd decoder: %v", err))
	}
	return d
}

func appendZstd(e *zstd.Encoder, dst, src []byte) ([]byte, error) {
	return e.EncodeAll(src, slices.Grow(dst, len(src)/2)), nil
}

func decodeZstd(dst, src []byte) error {
	out, err := zstdDecoder.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return damaged("zstd: %v", err)
	}
	if len(out) != len(dst) {
		return damaged("zstd: decodes to %d bytes, want %d", len(out), len(dst))
	}
	return nil
}
