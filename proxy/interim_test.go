package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// An interim response has only the target's header fields, without hop-by-hop fields, and
// removes none that filters have set for the final response (golang/go#81207, #81319).
func TestInterimResponses(t *testing.T) { onPaths(t, testInterimResponses) }
func testInterimResponses(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\n"+
		"HTTP/1.1 102 Processing\r\n\r\n"+
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Final: 1\r\nDate: d\r\n\r\nok")
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Filter", "set")
		p.ServeHTTP(w, r)
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Receive("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
	client.Receive("HTTP/1.1 102 Processing\r\n\r\n")
	want := "HTTP/1.1 200 OK\n" + strings.Join([]string{"content-length: 2", "date: d", "x-filter: set", "x-final: 1"}, "\n")
	if got := wiretest.Lines(client.Header()); got != want {
		t.Errorf("the client got\n%s\nwant\n%s", got, want)
	}
	client.Receive("ok")
}

// HTTP/1.0 has no interim responses (RFC 9110 section 15.2), and no client gets a 100
// without Expect.
func TestInterimResponsesNotWanted(t *testing.T) { onPaths(t, testInterimResponsesNotWanted) }
func testInterimResponsesNotWanted(t *testing.T, via path) {
	leaktest.Check(t)
	tests := map[string]struct{ interim, request string }{
		"HTTP/1.0":   {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"},
		"a lone 100": {"HTTP/1.1 100 Continue\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := wiretest.Dial(t, gateway(t, via, wiretest.Replying(t, test.interim+ok)))
			client.Send(test.request)
			client.Status(200)
		})
	}
}

// DropInterim keeps interim responses from the client of one request, and leaves those of the next alone.
func TestDropInterim(t *testing.T) { onPaths(t, testDropInterim) }
func testDropInterim(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Rewrite: func(o *proxy.Outbound) {
		o.DropInterim = o.In.URL.Path == "/drop"
	}})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	for _, path := range []string{"/drop", "/", "/drop"} {
		client.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		if path == "/" {
			client.Receive("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
		}
		if got := client.Header(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
			t.Errorf("%s: %q", path, got)
		}
		client.Receive("ok")
	}
}

// MaxHeaderBytes bounds all interim responses of a request together.
func TestSizeOfInterimResponses(t *testing.T) { onPaths(t, testSizeOfInterimResponses) }
func testSizeOfInterimResponses(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <"+strings.Repeat("a", 1000)+">\r\n\r\n", 8) + ok)
		p.Ended()
	})
	var failed failures
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{MaxHeaderBytes: 4 << 10}, target), OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	got, interim := client.Header(), 0
	for ; strings.HasPrefix(got, "HTTP/1.1 103 "); got = client.Header() {
		interim++
	}
	if !strings.HasPrefix(got, "HTTP/1.1 502 ") || interim > 3 {
		t.Errorf("the client got %d interim responses and %q", interim, got)
	}
	failed.await(t)
	if e := failed.only(t); e.Kind != culvert.HeaderInvalid {
		t.Errorf("failure %#v", e)
	}
}
