package aggregate

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs more random checks than rapid's default of 100.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("1000")
	}
	os.Exit(m.Run())
}
