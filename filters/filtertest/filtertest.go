// Package filtertest checks that a filter preserves what proxying needs: flushes,
// hijacks, trailers, interim responses, ReadFrom, deadlines, aborts. A filter that
// loses one of them breaks a WebSocket, a watch or a gRPC call inside of it, often
// long after it was written (chi#544, coraza-caddy#326).
//
//	func TestMyFilter(t *testing.T) { filtertest.Test(t, myfilter.New()) }
package filtertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/culvert-go/culvert"
)

// Failure is a check that a filter has not passed.
type Failure struct {
	// Check is the name of the check, "flush" for instance.
	Check string
	// Err describes what the filter did wrong.
	Err error
}

// String returns the name of the check and the text of Err.
func (f Failure) String() string { return fmt.Sprintf("%s: %v", f.Check, f.Err) }

// Option changes what is required of a filter.
type Option func(*options)

type options struct {
	transformsBody bool
	except         []string
}

// TransformsBody is the Option for a filter that rewrites bodies: its writer need not
// implement io.ReaderFrom. The client must still receive the body as the handler has
// written it, so the filter must not rewrite the plain text that the checks send.
func TransformsBody() Option { return func(o *options) { o.transformsBody = true } }

// Except is the Option that leaves out the checks of these names, for a filter that gives up
// what they check on purpose: one that buffers responses can't pass "flush". The names are
// those of Failure.Check and of Test's subtests: "request", "response", "empty", "flush",
// "interim", "trailers", "request trailers", "readfrom", "full duplex", "deadlines",
// "hijack", "abort", "cancel", "keep-alive". It panics if there is no check of a name.
func Except(names ...string) Option {
	for _, name := range names {
		if !slices.ContainsFunc(checks[:], func(c check) bool { return c.name == name }) {
			panic(fmt.Sprintf("filtertest: there is no check %q", name))
		}
	}
	return func(o *options) { o.except = append(o.except, names...) }
}

// Check runs every check of f and returns the failures, nil if there are none.
// Each check runs f around a scripted handler on a server of its own on a free
// loopback port, with a raw connection as the client. The checks run concurrently, so
// f's handlers must be safe for that. They take well under a second if nothing fails, and
// up to ten seconds if a filter hangs.
func Check(f culvert.Filter, opts ...Option) []Failure {
	o := apply(opts)
	errs := make([]error, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		if slices.Contains(o.except, c.name) {
			continue
		}
		running.Go(func() { errs[i] = c.run(f, o) })
	}
	running.Wait()
	var failures []Failure
	for i, err := range errs {
		if err != nil {
			failures = append(failures, Failure{checks[i].name, err})
		}
	}
	return failures
}

// Test runs every check of f as a subtest of t, one after the other.
func Test(t *testing.T, f culvert.Filter, opts ...Option) {
	o := apply(opts)
	for _, c := range checks {
		if slices.Contains(o.except, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(f, o); err != nil {
				t.Error(err)
			}
		})
	}
}

func apply(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

type check struct {
	name string
	run  func(culvert.Filter, options) error
}

// checks are the checks, in the order of the failures that Check returns.
var checks = [...]check{
	{"request", checkRequest},
	{"response", checkResponse},
	{"empty", checkEmpty},
	{"flush", checkFlush},
	{"interim", checkInterim},
	{"trailers", checkTrailers},
	{"request trailers", checkRequestTrailers},
	{"readfrom", checkReadFrom},
	{"full duplex", checkFullDuplex},
	{"deadlines", checkDeadlines},
	{"hijack", checkHijack},
	{"abort", checkAbort},
	{"cancel", checkCancel},
	{"keep-alive", checkKeepAlive},
}
