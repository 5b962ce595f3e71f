package rowset

import (
	"fmt"
	"testing"

	"github.com/minikudu/minikudu/internal/filter"
	"github.com/minikudu/minikudu/schema"
	"github.com/minikudu/minikudu/vector"
)

func manyKeys(n int) *vector.Vector {
	v := vector.New(schema.KindBytes, n)
	for i := range n {
		if err := v.AppendBytes(fmt.Appendf(nil, "key %06d", i)); err != nil {
			panic(err)
		}
	}
	return v
}

func TestLocationsAreThoseOfTheKey(t *testing.T) {
	k := &Keys{Encoded: manyKeys(130)}
	for _, i := range []int{129, 0, 64, 129} {
		if *k.Locations(i) != filter.Locate(k.At(i)) {
			t.Errorf("key %d has other locations", i)
		}
	}
	k.Reset()
	k.Encoded = manyKeys(200).Slice(70, 200)
	k.LocateAll()
	for i := range k.Len() {
		if *k.Locations(i) != filter.Locate(k.At(i)) {
			t.Errorf("key %d has the locations of an earlier batch", i)
		}
	}
}

func TestLocationsAllocateOncePerBatch(t *testing.T) {
	k := &Keys{Encoded: manyKeys(1000)}
	k.LocateAll()
	enc := k.Encoded
	if n := testing.AllocsPerRun(20, func() {
		k.Reset()
		k.Encoded = enc
		k.LocateAll()
	}); n != 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}
