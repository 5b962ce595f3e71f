package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// SeedVariable is the environment variable that sets the seed of Rand.
const SeedVariable = "MINIKUDU_SEED"

// Rand returns random numbers from a seed that is new in every run, unless
// SeedVariable sets it. A test that fails prints the seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(SeedVariable); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", SeedVariable, err)
		}
		seed = n
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat: %s=%d", SeedVariable, seed)
		}
	})
	return Seeded(seed)
}

// Seeded returns random numbers from a fixed seed.
func Seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6d696e69)) }

// CheckLeaks fails the test at its end if goroutines begun after this call still run.
// Call it first, so that it looks last.
func CheckLeaks(t testing.TB) {
	t.Helper()
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := goleak.Find(current); err != nil {
			t.Error(err)
		}
	})
}
