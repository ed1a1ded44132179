package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// TestPanicBesideAnUnsentBody: after a panic net/http's server continues to read the request's body before it closes the connection.
// A client that sends nothing of it does not hold the connection, with any ReadTimeout and any function that panicked.
func TestPanicBesideAnUnsentBody(t *testing.T) { onPaths(t, testPanicBesideAnUnsentBody) }
func testPanicBesideAnUnsentBody(t *testing.T, via path) {
	const (
		plain     = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
		expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n"
		upgrade   = "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 100000\r\n\r\n"
	)
	requests := map[string]string{"plain": plain, "Expect": expecting, "upgrade": upgrade}
	bug := func() { panic("a bug") }
	refusing := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
	responding := pipeTo(func(c net.Conn) {
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		}
		_, _ = io.Copy(io.Discard, in)
	})
	type gateway struct {
		proxy  proxy.Options
		group  upstream.Options
		drains bool
		filter func(http.Handler) http.Handler // nil: none
	}
	for hook, make := range map[string]func() gateway{
		"Rewrite": func() gateway {
			return gateway{proxy: proxy.Options{Rewrite: func(*proxy.Outbound) { bug() }}}
		},
		"a key": func() gateway {
			return gateway{group: upstream.Options{Balance: upstream.Hash(func(*http.Request) string { bug(); return "" })}}
		},
		"DialContext": func() gateway {
			return gateway{group: upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) { bug(); return nil, nil }}}
		},
		"OnError": func() gateway {
			return gateway{proxy: proxy.Options{OnError: func(*http.Request, *culvert.Error) { bug() }}, drains: true}
		},
		"OnError, no connection": func() gateway {
			return gateway{proxy: proxy.Options{OnError: func(*http.Request, *culvert.Error) { bug() }}, group: upstream.Options{DialContext: refusing}}
		},
		"ErrorHandler": func() gateway {
			return gateway{proxy: proxy.Options{ErrorHandler: func(http.ResponseWriter, *http.Request, *culvert.Error) { bug() }}, drains: true}
		},
		"ModifyResponse": func() gateway {
			return gateway{proxy: proxy.Options{ModifyResponse: func(*proxy.Response) { bug() }}, group: upstream.Options{DialContext: responding}}
		},
		"a response's header": func() gateway {
			return gateway{group: upstream.Options{DialContext: responding}, filter: filters.OnResponse(filters.ResponseHooks{
				Header: func(*http.Request, int, http.Header) { bug() }})}
		},
		"a request that is over": func() gateway { // which is aborted
			return gateway{filter: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithCancel(r.Context())
					cancel()
					next.ServeHTTP(w, r.WithContext(ctx))
				})
			}}
		},
	} {
		for kind, request := range requests {
			t.Run(hook+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leaktest.Check(t)
					g := make()
					if g.group.DialContext == nil {
						g.group.DialContext = refusing
					}
					g.group.Protocol = upstream.HTTP1
					group := groupOf(t, g.group, upstream.Target{Addr: "192.0.2.1:80"})
					upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"tcp"}, Dial: group.Dial})
					if err != nil {
						t.Fatal(err)
					}
					g.proxy.Upstream, g.proxy.Upgrades, g.proxy.ReadTimeout = group, upgrades, -1
					p := newProxy(t, via, g.proxy)
					if g.drains {
						_ = p.Drain(t.Context())
					}
					h := http.Handler(p)
					if g.filter != nil {
						h = g.filter(p)
					}
					wiretest.Unsent(t, h, request)
					_ = p.Drain(context.Background())
				})
			})
		}
	}
}
