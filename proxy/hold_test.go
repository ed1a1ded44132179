package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// lender is a writer that counts the calls of Hold.
type lender struct {
	quietWriter
	holds *int
}

func (l lender) Hold()          { *l.holds++ }
func (lender) Memory() []string { return nil }

// What continues behind the handler holds the request: a dial, an upload, a transport, and the program's own functions behind
// a failure. A plain exchange over a kept connection holds nothing.
func TestHolds(t *testing.T) {
	target := quietTarget(t, 0)
	type expectation struct{ first, second bool }
	for name, test := range map[string]struct {
		via    path
		to     string
		method string
		body   io.Reader
		want   expectation
	}{
		"dial":      {ownExchange, target, "GET", nil, expectation{true, false}},
		"upload":    {ownExchange, quietTarget(t, len("0\r\n\r\n")), "GET", strings.NewReader(""), expectation{true, true}},
		"transport": {httpTransport, target, "GET", nil, expectation{true, true}},
		"failure":   {ownExchange, target, "CONNECT", nil, expectation{true, true}}, // no target is dialled
	} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, test.via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, test.to)})
			var got [2]int
			for i := range got {
				r := httptest.NewRequest(test.method, "/", test.body)
				if test.body != nil {
					r.ContentLength = -1
				}
				p.ServeHTTP(lender{quietWriter{discard{http.Header{}}}, &got[i]}, r)
			}
			if (expectation{got[0] > 0, got[1] > 0}) != test.want {
				t.Errorf("holds: %v, want %v", got, test.want)
			}
		})
	}
}

// A proxy whose functions are given requests may be one that keeps them.
func TestReturns(t *testing.T) {
	balanced := func(b upstream.Balance) *upstream.Group {
		return groupAt(t, upstream.Options{Balance: b}, "127.0.0.1:1")
	}
	key := func(*http.Request) string { return "" }
	for name, test := range map[string]struct {
		o    proxy.Options
		want bool
	}{
		"plain":          {proxy.Options{Upstream: balanced(nil)}, true},
		"Rewrite":        {proxy.Options{Upstream: balanced(nil), Rewrite: func(*proxy.Outbound) {}}, false},
		"OnError":        {proxy.Options{Upstream: balanced(nil), OnError: func(*http.Request, *culvert.Error) {}}, true},
		"ModifyResponse": {proxy.Options{Upstream: balanced(nil), ModifyResponse: func(*proxy.Response) {}}, false},
		"OnAttempt":      {proxy.Options{Upstream: balanced(nil), OnAttempt: func(*http.Request, string) func(culvert.Attempt) { return nil }}, false},
		"Hash":           {proxy.Options{Upstream: balanced(upstream.Hash(key))}, false},
		"HashModulo":     {proxy.Options{Upstream: balanced(upstream.HashModulo(key))}, false},
		"BalanceFunc":    {proxy.Options{Upstream: balanced(upstream.BalanceFunc(func(*http.Request, []upstream.Candidate) int { return 0 }))}, false},
		"Sticky":         {proxy.Options{Upstream: balanced(upstream.Sticky(upstream.StickyOptions{}))}, true},
		"Otherwise":      {proxy.Options{Upstream: balanced(upstream.Sticky(upstream.StickyOptions{Otherwise: upstream.Hash(key)}))}, false},
	} {
		if got := clientside.Returns(newProxy(t, ownExchange, test.o)); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
