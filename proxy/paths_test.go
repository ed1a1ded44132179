package proxy_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
)

// standardVariable is set for the second run of the tests: over net/http's transport, as if the
// targets spoke HTTP/2.
const standardVariable = "CULVERT_TEST_STANDARD_PATH"

var onStandardPath = os.Getenv(standardVariable) != ""

// TestMain runs all tests on both paths at once, in two processes: the proxy's own exchange and
// net/http's. Benchmarks and fuzzing run on the first alone.
//
// Tests that call t.Parallel run all at once, unless -parallel says how many: they spend their time waiting, for bounds of
// seconds, and for net/http's server, which holds a connection that it closes with its request unread for half a second.
// What they leave behind is looked for when all have ended.
func TestMain(m *testing.M) {
	flag.Parse()
	if value("test.bench") != "" || value("test.fuzz") != "" || value("test.list") != "" {
		os.Exit(m.Run())
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "100")
	}
	if onStandardPath {
		os.Exit(leaktest.Run(m))
	}
	os.Exit(leaktest.Run(bothPaths{m}))
}

// bothPaths runs the tests on both paths.
type bothPaths struct{ own *testing.M }

func (b bothPaths) Run() (code int) {
	var out bytes.Buffer
	standard := standardRun(&out)
	err := standard.Start()
	code = b.own.Run()
	if err == nil {
		err = standard.Wait()
	}
	if err != nil {
		fmt.Printf("%s\nover net/http's transport: %v\n", &out, err)
		code = 1
	}
	return code
}

// standardRun returns the run of these tests on net/http's path.
func standardRun(out io.Writer) *exec.Cmd {
	own := func(arg string) bool { // the first run's files: go test's, and profiles
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-test."), "=")
		return name == "testlogfile" || strings.HasSuffix(name, "profile") || name == "trace"
	}
	c := exec.Command(os.Args[0], slices.DeleteFunc(slices.Clone(os.Args[1:]), own)...)
	c.Env = append(os.Environ(), standardVariable+"=1")
	c.Stdout, c.Stderr = out, out
	return c
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

// atOnce runs test for each of the cases as a subtest, all at once: they spend their time waiting for
// net/http's server, which holds a connection that it closes with its request unread for half a second.
func atOnce[Case any](t *testing.T, cases []Case, name func(Case) string, test func(*testing.T, Case)) {
	var running sync.WaitGroup
	for _, c := range cases {
		running.Go(func() { t.Run(name(c), func(t *testing.T) { test(t, c) }) })
	}
	running.Wait()
}
