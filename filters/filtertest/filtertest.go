// Package filtertest tells whether a filter keeps what proxying needs: flushes,
// hijacks, trailers, interim answers, ReadFrom, deadlines, aborts. A filter that
// loses one of them breaks a WebSocket, a watch or a gRPC call behind it, often
// long after it was written (chi#544, coraza-caddy#326).
//
//	func TestMyFilter(t *testing.T) { filtertest.Test(t, myfilter.New()) }
package filtertest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/filters"
)

// Failure is a check that a filter did not pass.
type Failure struct {
	// Check is the name of the check, "flush" for instance.
	Check string
	// Err says what was seen.
	Err error
}

// String tells the check and what was seen.
func (f Failure) String() string { return fmt.Sprintf("%s: %v", f.Check, f.Err) }

// Option changes what is asked of a filter.
type Option func(*options)

type options struct{ transformsBody bool }

// TransformsBody is for a filter that rewrites bodies: it need not offer
// io.ReaderFrom. The body must still arrive as the handler wrote it, so switch the
// rewriting off for the plain text that the checks send.
func TransformsBody() Option { return func(o *options) { o.transformsBody = true } }

// Check runs every check of f and returns those that failed, nil if none did.
// Each check runs f in front of a scripted handler on a server of its own on a free
// loopback port, and speaks to it over a raw connection. The checks run at the same
// time; they take well under a second if nothing fails, up to ten if a filter hangs.
func Check(f filters.Filter, opts ...Option) []Failure {
	o := apply(opts)
	var errs [len(checks)]error
	var running sync.WaitGroup
	for i, c := range checks {
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

// Test runs every check of f as a subtest.
func Test(t *testing.T, f filters.Filter, opts ...Option) {
	o := apply(opts)
	for _, c := range checks {
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

// checks are what Check runs, in order.
var checks = [...]struct {
	name string
	run  func(filters.Filter, options) error
}{
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
