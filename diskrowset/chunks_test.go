package diskrowset

import (
	"bytes"
	"testing"
)

func TestChunks(t *testing.T) {
	for _, sizes := range [][]int{{}, {0}, {1}, {firstChunk}, {firstChunk - 1, 2, chunkBytes}, {firstChunk + chunkBytes, 1}, {300_000, 7, 300_000}} {
		var c chunks
		for range 2 { // the second with chunks that were used
			var want, got bytes.Buffer
			for i, n := range sizes {
				p := bytes.Repeat([]byte{byte(i + 1)}, n)
				want.Write(p)
				if k, err := c.Write(p); k != n || err != nil {
					t.Fatal(k, err)
				}
			}
			if c.Len() != want.Len() {
				t.Errorf("%v: %d bytes, want %d", sizes, c.Len(), want.Len())
			}
			if err := c.moveTo(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) || c.Len() != 0 {
				t.Errorf("%v: %d bytes, %v", sizes, got.Len(), err)
			}
		}
	}
}

// A buffer that grows allocates nothing once its chunks are there.
func TestChunksAreUsedAgain(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget at random")
	}
	p, sink := make([]byte, 1<<20), bytes.NewBuffer(make([]byte, 0, 2<<20))
	var c chunks
	n := testing.AllocsPerRun(10, func() {
		sink.Reset()
		_, _ = c.Write(p)
		_ = c.moveTo(sink)
	})
	if n > 10 { // the list of chunks, and a garbage collection
		t.Errorf("%f allocations", n)
	}
}
