package proxy_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// To a client of HTTP/1.0, as nginx is one to its upstreams by default, a body without a length ends with the connection. A
// body that was cut off must not end like a whole one.
func TestCutBodyOverHTTP10(t *testing.T) { onPaths(t, testCutBodyOverHTTP10) }

func testCutBodyOverHTTP10(t *testing.T, via path) {
	leaktest.Check(t)
	target := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "part")
		http.NewResponseController(w).Flush()
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secure := range []bool{false, true} {
		s := httptest.NewUnstartedServer(filters.NewChain(filters.AccessLog(slog.New(slog.DiscardHandler)), compress).Then(p))
		dial := net.Dial
		if !secure {
			wiretest.Start(s)
		} else {
			wiretest.StartTLS(s)
			dial = func(network, addr string) (net.Conn, error) {
				return tls.Dial(network, addr, &tls.Config{InsecureSkipVerify: true})
			}
		}
		defer s.Close()
		for _, path := range []string{"/cut", "/whole"} {
			c, err := dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			io.WriteString(c, "GET "+path+" HTTP/1.0\r\n\r\n")
			got, err := io.ReadAll(c)
			if (err != nil) != (path == "/cut") || !strings.HasSuffix(string(got), "\r\n\r\npart") {
				t.Errorf("TLS %t: %s ends with %v after %q", secure, path, err, got)
			}
		}
	}
}
