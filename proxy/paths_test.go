package proxy_test

import (
	"flag"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// path is how a proxy sends requests to the targets of its group.
type path string

const (
	ownExchange   path = "own"            // the proxy's own HTTP/1.1 exchange
	httpTransport path = "http.Transport" // net/http's transport, as if the targets spoke HTTP/2
	anyPath       path = "any"            // of a proxy that has a transport of its user's, or no group: it has no choice
)

// onPaths runs test on each path as a subtest. A test that depends on the path is declared as
//
//	func TestX(t *testing.T) { onPaths(t, testX) }
//	func testX(t *testing.T, via path) {
func onPaths(t *testing.T, test func(t *testing.T, via path)) {
	for _, via := range []path{ownExchange, httpTransport} {
		t.Run(string(via), func(t *testing.T) { test(t, via) })
	}
}

// onPathsParallel is onPaths for a test that runs in parallel with others: its subtests do as well.
func onPathsParallel(t *testing.T, test func(t *testing.T, via path)) {
	t.Parallel()
	onPaths(t, func(t *testing.T, via path) {
		t.Parallel()
		test(t, via)
	})
}

// newProxy returns a proxy with the options that sends requests to its group's targets via the path.
func newProxy(t testing.TB, via path, o proxy.Options) *proxy.Proxy {
	t.Helper()
	group, _ := o.Upstream.(*upstream.Group)
	given := o.Transport != nil || group == nil
	if via == anyPath && !given {
		t.Fatal("this proxy depends on the path: see onPaths")
	}
	if via == httpTransport && !given {
		o.Transport = standard{group.Transport()}
	}
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// standard hides that a transport is a group's own.
type standard struct{ http.RoundTripper }

// TestMain looks for what the tests leave behind when all have ended. Tests that call t.Parallel run all at once, unless
// -parallel says how many: they spend their time waiting, for bounds of seconds, and for net/http's server, which holds a
// connection that it closes with its request unread for half a second.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "100")
	}
	if value("test.bench") != "" || value("test.fuzz") != "" {
		os.Exit(m.Run())
	}
	os.Exit(leaktest.Run(m))
}

func value(name string) string { return flag.Lookup(name).Value.String() }

// atOnce runs test for each of the cases as a subtest, all at once: they spend their time waiting for
// net/http's server, which holds a connection that it closes with its request unread for half a second.
func atOnce[Case any](t *testing.T, cases []Case, name func(Case) string, test func(*testing.T, Case)) {
	var running sync.WaitGroup
	for _, c := range cases {
		running.Go(func() { t.Run(name(c), func(t *testing.T) { test(t, c) }) })
	}
	running.Wait()
}
