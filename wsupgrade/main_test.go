package wsupgrade_test

import (
	"flag"
	"os"
	"testing"
)

// portable is which engine the tests run on.
var portable bool

// TestMain runs everything on both engines: on the system's own, then on the portable
// one. Fuzzing and benchmarks choose for themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.bench").Value.String() == "" {
		portable = true
		code = m.Run()
	}
	os.Exit(code)
}
