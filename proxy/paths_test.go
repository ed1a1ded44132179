package proxy_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/proxy"
)

// standardVariable is set for the second run of the tests: over net/http's transport, as if the
// targets spoke HTTP/2.
const standardVariable = "CULVERT_TEST_STANDARD_PATH"

var onStandardPath = os.Getenv(standardVariable) != ""

// TestMain runs all tests on both paths: the proxy's own exchange and net/http's. Benchmarks and
// fuzzing run on the first alone.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && !onStandardPath && value("test.bench") == "" && value("test.fuzz") == "" && value("test.list") == "" {
		args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return strings.HasPrefix(arg, "-test.testlogfile") }) // go test's
		again := exec.Command(os.Args[0], args...)
		again.Env = append(os.Environ(), standardVariable+"=1")
		out, err := again.CombinedOutput()
		if err != nil {
			fmt.Printf("%s\nover net/http's transport: %v\n", out, err)
			code = 1
		}
	}
	os.Exit(code)
}

func value(name string) string { return flag.Lookup(name).Value.String() }

// onPath makes o run on the path of this run.
func onPath(o proxy.Options) proxy.Options {
	if onStandardPath && o.Transport == nil && o.Upstream != nil {
		o.Transport = standard{o.Upstream.Transport()}
	}
	return o
}

// standard hides that a transport is a group's own.
type standard struct{ http.RoundTripper }
