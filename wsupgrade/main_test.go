package wsupgrade_test

import (
	"flag"
	"os"
	"testing"
)

// portable reports whether the tests run on the portable engine.
var portable bool

// TestMain runs the tests on both engines: on the system's own, then on the portable one. Fuzz
// targets and benchmarks choose their engine themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.bench").Value.String() == "" {
		portable = true
		code = m.Run()
	}
	os.Exit(code)
}
