package filters_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
	"github.com/culvert-go/culvert/wsupgrade"
)

// webSocket is the beginning of the request of a watch over WebSocket.
const webSocket = "GET /api/v1/pods?watch=1 HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// ahead returns a filter that replaces the next handler by f around an empty response.
func ahead(f culvert.Filter) culvert.Filter {
	return func(http.Handler) http.Handler {
		return f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	}
}

// views returns a filter that serves every resource from a view.
func views(t *testing.T) culvert.Filter {
	v, err := view.New(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return nothing{} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v.Filter
}

// nothing is a view.Renderer that is not used.
type nothing struct{ view.Renderer }

// connect returns a filter that replaces the next handler by one for CONNECT.
func connect(t *testing.T) culvert.Filter {
	f, err := wsupgrade.New(wsupgrade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.Connect(func(*http.Request) (string, error) { return "", errors.New("no") })
	if err != nil {
		t.Fatal(err)
	}
	return func(http.Handler) http.Handler { return h }
}

// handler returns a filter that replaces the next handler by one for upgrades, whose target can't be dialled.
func handler(t *testing.T) culvert.Filter {
	f, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"a"}, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no") }})
	if err != nil {
		t.Fatal(err)
	}
	h := f.Handler(&url.URL{Scheme: "http", Host: "target.test"})
	return func(http.Handler) http.Handler { return h }
}

// A filter that responds itself does not wait for the request's body.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	one := func(f culvert.Filter, err error) culvert.Filter {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	edits := func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}
	for _, c := range []struct {
		name   string
		filter culvert.Filter
		line   string
		status int
	}{
		{"RefuseAmbiguous", filters.RefuseAmbiguous(filters.AnyAmbiguity), "POST //a HTTP/1.1\r\n", 400},
		{"Decompress", one(filters.Decompress(filters.DecompressOptions{Requests: true})), "POST / HTTP/1.1\r\nContent-Encoding: br\r\n", 415},
		{"Concurrency", full(one(filters.Concurrency(filters.ConcurrencyOptions{Max: 1}))), "POST / HTTP/1.1\r\n", 503},
		{"RateLimit", full(one(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Per: time.Hour}))), "POST / HTTP/1.1\r\n", 429},
		{"RateLimit, no store", one(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Log: slog.New(slog.DiscardHandler), Store: outOfReach})), "POST / HTTP/1.1\r\n", 503},
		{"Recover", filters.Recover(slog.New(slog.DiscardHandler)), "POST / HTTP/1.1\r\n", 500},
		{"ForwardAuth", one(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(401)})), "POST / HTTP/1.1\r\n", 401},
		{"ForwardAuth, content", one(filters.ForwardAuth(filters.ForwardAuthOptions{To: denied("no")})), "POST / HTTP/1.1\r\n", 401},
		{"ForwardAuth, failure", one(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(404)})), "POST / HTTP/1.1\r\n", 502},
		{"AddressList", one(filters.AddressList(filters.AddressListOptions{Rules: rules("+192.0.2.1/32")})), "POST / HTTP/1.1\r\n", 403},
		{"BasicAuth", one(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: map[string]string{"a": "b"}})), "POST / HTTP/1.1\r\n", 401},
		{"BodyLimit", one(filters.BodyLimit(1)), "POST / HTTP/1.1\r\n", 413},
		{"Timeout", one(filters.Timeout(time.Second)), "POST /silent HTTP/1.1\r\n", 504},
		{"watchcodec write", one(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: edits})), "PUT /api/v1/namespaces/a/pods/b HTTP/1.1\r\n", 403},
		{"watchcodec accept", one(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: edits})), "GET /api/v1/pods HTTP/1.1\r\nAccept: text/html\r\n", 406},
		{"watchcodec WebSocket token", watchcodec.WebSocketWatch(0), webSocket + "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dG9rZW4\r\n", 401},
		{"watchcodec WebSocket origin", ahead(watchcodec.WebSocketWatch(0)), webSocket + "Origin: http://other.test\r\n", 403},
		{"view accept", views(t), "GET /api/v1/pods HTTP/1.1\r\nAccept: text/html\r\n", 406},
		{"Handler, no upgrade", handler(t), "POST / HTTP/1.1\r\n", 426},
		{"Handler, no target", handler(t), "POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: a\r\n", 502},
		{"Connect, forbidden", connect(t), "CONNECT a:1 HTTP/1.1\r\n", 403},
		{"Connect method", connect(t), "POST / HTTP/1.1\r\n", 405},
		{"watchcodec upgrade", one(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: edits})), "GET /api/v1/pods HTTP/1.1\r\nUpgrade: a\r\nConnection: Upgrade\r\n", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/silent" {
						<-r.Context().Done()
						return
					}
					panic("the handler was called")
				})
				client, end := servePipe(filters.NewChain(c.filter).Then(handler))
				defer end()
				if _, err := io.WriteString(client, c.line+"Host: a\r\nContent-Length: 10\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				_ = client.SetReadDeadline(time.Now().Add(time.Minute))
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatalf("no response within a minute: %v", err)
				}
				if response.StatusCode != c.status {
					t.Errorf("status %d, want %d", response.StatusCode, c.status)
				}
			})
		})
	}
}

// outOfReach is a RateLimitStore that fails.
var outOfReach = store(func(context.Context, string, filters.RateLimitBucket) (s filters.RateLimitState, err error) {
	return s, errors.New("out of reach")
})

// full returns a filter in which a request is running, so that f, which bounds requests, refuses another one.
func full(f culvert.Filter) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hold, held := make(chan struct{}), make(chan struct{})
			h := f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "HOLD" {
					close(held)
					<-hold
				}
			}))
			go h.ServeHTTP(nil, &http.Request{Method: "HOLD"})
			<-held
			h.ServeHTTP(w, r)
			close(hold)
		})
	}
}

// servePipe serves h on a connection in memory until end is called.
func servePipe(h http.Handler) (client net.Conn, end func()) {
	client, server := net.Pipe()
	l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- server
	s := wiretest.Server(&http.Server{Handler: h, ErrorLog: wiretest.Quiet()})
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	return client, func() {
		_ = client.Close()
		_ = s.Close()
		<-served
	}
}

// pipeListener accepts one connection.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
