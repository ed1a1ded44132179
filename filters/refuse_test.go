package filters_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// A filter that responds itself does so also where the client never sends the body that it has announced.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	one := func(f filters.Filter, err error) filters.Filter {
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
		filter filters.Filter
		line   string
		status int
	}{
		{"RefuseAmbiguous", filters.RefuseAmbiguous(filters.AnyAmbiguity), "POST //a HTTP/1.1\r\n", 400},
		{"Decompress", one(filters.Decompress(filters.DecompressOptions{Requests: true})), "POST / HTTP/1.1\r\nContent-Encoding: br\r\n", 415},
		{"Concurrency", full(one(filters.Concurrency(filters.ConcurrencyOptions{Max: 1}))), "POST / HTTP/1.1\r\n", 503},
		{"Recover", filters.Recover(slog.New(slog.DiscardHandler)), "POST / HTTP/1.1\r\n", 500},
		{"BodyLimit", one(filters.BodyLimit(1)), "POST / HTTP/1.1\r\n", 413},
		{"Timeout", one(filters.Timeout(time.Second)), "POST /silent HTTP/1.1\r\n", 504},
		{"watchcodec write", one(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: edits})), "PUT /api/v1/namespaces/a/pods/b HTTP/1.1\r\n", 403},
		{"watchcodec accept", one(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: edits})), "GET /api/v1/pods HTTP/1.1\r\nAccept: text/html\r\n", 406},
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

// full lets a request run in a filter that bounds them, for ever.
func full(f filters.Filter) filters.Filter {
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

// servePipe serves a connection in memory, until end is called.
func servePipe(h http.Handler) (client net.Conn, end func()) {
	client, server := net.Pipe()
	l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- server
	s := &http.Server{Handler: h, ErrorLog: wiretest.Quiet()}
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
