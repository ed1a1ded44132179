package watchcodec_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestEndOfAWebSocketWatch: a watch that was cut off is distinguished from one that has timed out,
// which is closed with 1000.
func TestEndOfAWebSocketWatch(t *testing.T) {
	event := pod("ADDED", "a", "yes", "1")
	half := pod("ADDED", "b", "yes", "2")[:20]
	sends := func(contentType, body string, end func()) func(*testing.T) http.Handler {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
			_ = http.NewResponseController(w).Flush()
			end()
		})
		return func(*testing.T) http.Handler { return h }
	}
	returns := func() {}
	aborts := func() { panic(http.ErrAbortHandler) }
	const protobuf = "application/vnd.kubernetes.protobuf;stream=watch"
	for name, test := range map[string]struct {
		next   func(*testing.T) http.Handler
		filter bool // watchcodec's filter is in front
		code   int
	}{
		"its time":                  {sends("application/json", event, returns), false, websocket.CloseNormalClosure},
		"its time, filtered":        {sends("application/json", event, returns), true, websocket.CloseNormalClosure},
		"its time, blanks":          {sends("application/json", event+"\n \n", returns), false, websocket.CloseNormalClosure},
		"its time, protobuf":        {sends(protobuf, "\x00\x00\x00\x01x", returns), false, websocket.CloseNormalClosure},
		"an abort":                  {sends("application/json", event, aborts), false, websocket.CloseInternalServerErr},
		"an abort, filtered":        {sends("application/json", event, aborts), true, websocket.CloseInternalServerErr},
		"an abort in an event":      {sends("application/json", event+half, aborts), false, websocket.CloseInternalServerErr},
		"half an event":             {sends("application/json", event+half, returns), false, websocket.CloseInternalServerErr},
		"half an event, protobuf":   {sends(protobuf, "\x00\x00\x00\x01x\x00\x00\x00\x05x", returns), false, websocket.CloseInternalServerErr},
		"no event":                  {sends("application/json", event+"no", returns), false, websocket.CloseInternalServerErr},
		"a proxy, its time":         {proxied("5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n"), false, websocket.CloseNormalClosure},
		"a proxy, whose target cut": {proxied("5\r\n{\"a\":\r\n2\r\n1}\r\n"), false, websocket.CloseInternalServerErr},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			next := test.next(t)
			h := watchcodec.WebSocketWatch(0)(next)
			if test.filter {
				f, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seen }})
				if err != nil {
					t.Fatal(err)
				}
				h = f(next)
			}
			s := wiretest.NewServer(h)
			defer s.Close()
			conn, _, err := dialWatch(t, s, "/api/v1/pods?watch=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, message, err := conn.ReadMessage(); err != nil {
				t.Errorf("the event: %q, %v", message, err)
			}
			if _, message, err := conn.ReadMessage(); !websocket.IsCloseError(err, test.code) {
				t.Errorf("the end: %q, %v, want %d", message, err, test.code)
			}
		})
	}
}

// proxied is a proxy to a target that sends the chunks of a watch and ends its connection.
func proxied(chunks string) func(*testing.T) http.Handler {
	return func(t *testing.T) http.Handler {
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Send(strings.Join([]string{"HTTP/1.1 200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked", "", chunks}, "\r\n"))
		})
		group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = group.Close() })
		p, err := proxy.New(proxy.Options{Upstream: group})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}
