//go:build !race

// The race detector makes a sync.Pool drop objects at random.

package filters_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// TestAllocationsOfTheHotPath bounds what the filters allocate for a request. The number of allocations is
// exact, which a time is not.
func TestAllocationsOfTheHotPath(t *testing.T) {
	for name, log := range logs() {
		h, r, w := hotPath(t, log), hotRequest(), &bareWriter{http.Header{}}
		if got := testing.AllocsPerRun(100, func() {
			clear(w.h)
			h.ServeHTTP(w, r)
		}); got > 4 {
			t.Errorf("%s: %v allocations, want at most 4", name, got)
		}
	}
}

// A request of a known client, below its limit, allocates nothing.
func TestAllocationsOfRateLimit(t *testing.T) {
	long := strings.Repeat("k", 200)
	for name, test := range map[string]struct {
		key    func(*http.Request) string
		remote string
	}{
		"IPv4":     {nil, "192.0.2.7:1234"},
		"IPv6":     {nil, "[2001:db8:1111:2222:3333:4444:5555:6666]:1234"},
		"a key":    {func(*http.Request) string { return "k" }, ""},
		"long key": {func(*http.Request) string { return long }, ""},
	} {
		h := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1e6, Per: time.Hour, Key: test.key, IPv6Bits: 128}))(quiet)
		r, w := hotRequest(), &bareWriter{http.Header{}}
		r.RemoteAddr = test.remote
		if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// An address that is allowed costs no allocation.
func TestAllocationsOfAddressList(t *testing.T) {
	h := good(t)(filters.AddressList(filters.AddressListOptions{Rules: rules("-10.0.0.0/8 +192.0.2.0/24")}))(quiet)
	r, w := hotRequest(), &bareWriter{http.Header{}}
	if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// The buckets that are full again are used for new clients, so that memory is taken for those that are not.
func TestAllocationsOfRateLimitForNewClients(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	var next int
	h := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1e9, Burst: 1, // full again after a nanosecond
		Key: func(*http.Request) string { next++; return keys[next%len(keys)] }}))(quiet)
	r, w := hotRequest(), &bareWriter{http.Header{}}
	if got := testing.AllocsPerRun(len(keys)-2, func() { h.ServeHTTP(w, r) }); got != 0 {
		t.Errorf("%v allocations for a new client", got)
	}
}
