package watchcodec_test

import (
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

func dialWatch(t *testing.T, s *httptest.Server, path string, h http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	d := websocket.Dialer{HandshakeTimeout: time.Minute}
	conn, resp, err := d.Dial("ws"+strings.TrimPrefix(s.URL, "http")+path, h)
	if err == nil {
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	}
	return conn, resp, err
}

// TestWatchOverWebSocket: each visible event is a message, hidden ones are not sent, and the watch
// is closed with 1000.
func TestWatchOverWebSocket(t *testing.T) {
	leaktest.Check(t)
	next := make(chan string)
	s := filtered(t, seen, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" || r.Header.Get("Sec-Websocket-Key") != "" {
			t.Errorf("the request has an upgrade: %v", r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		for sent := range next {
			_, _ = io.WriteString(w, sent)
		}
	})
	conn, _, err := dialWatch(t, s, "/api/v1/pods?watch=1", nil) // before any event
	if err != nil {
		t.Fatal(err)
	}
	next <- pod("ADDED", "a", "no", "1") + pod("ADDED", "b", "yes", "2") + pod("ADDED", "c", "yes", "3")
	for _, name := range []string{"b", "c"} {
		kind, message, err := conn.ReadMessage()
		if want := pod("ADDED", name, "yes", map[string]string{"b": "2", "c": "3"}[name]); kind != websocket.TextMessage || string(message)+"\n" != want || err != nil {
			t.Errorf("%d %q %v, want %q", kind, message, err, want)
		}
	}
	close(next)
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the end: %v", err)
	}
	conn.Close()
	s.Close()
}

// TestProtobufWatchOverWebSocket: each event of a recorded watch is a binary message without its
// length.
func TestProtobufWatchOverWebSocket(t *testing.T) {
	r := recorded(t, func(r recording) bool { return r.name == "watch/watch-endpointslices-pb" })[0]
	body := r.body(t)
	s := filtered(t, seeAll, replay(t, r, 5000))
	conn, _, err := dialWatch(t, s, r.target, http.Header{"Accept": {r.accept}})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for {
		kind, message, err := conn.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			break
		}
		if err != nil || kind != websocket.BinaryMessage {
			t.Fatal(kind, err)
		}
		got = append(binary.BigEndian.AppendUint32(got, uint32(len(message))), message...)
	}
	if string(got) != string(body) {
		t.Errorf("%d bytes, the server sent %d", len(got), len(body))
	}
}

// TestWebSocketRefused: a page of another site gets no watch, and a response that is not a watch
// reaches the client unchanged. The watch ends when its client disconnects.
func TestWebSocketRefused(t *testing.T) {
	leaktest.Check(t)
	ended := make(chan struct{})
	s := filtered(t, seen, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") == "bad" {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	})
	if _, resp, err := dialWatch(t, s, "/api/v1/pods?watch=1&resourceVersion=bad", nil); err == nil || resp.StatusCode != 400 {
		t.Errorf("a refused watch: %v %v", resp, err)
	}
	go func() { <-ended }()
	if _, resp, err := dialWatch(t, s, "/api/v1/pods?watch=1", http.Header{"Origin": {"https://evil.example"}}); err == nil || resp.StatusCode != 403 {
		t.Errorf("another site's page: %v %v", resp, err)
	}
	conn, _, err := dialWatch(t, s, "/api/v1/pods?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	<-ended
	s.Close()
}

// TestTokenOfAWebSocket: a browser's bearer token is used for the watch, as with kube-apiserver,
// and the subprotocol beside it is selected.
func TestTokenOfAWebSocket(t *testing.T) {
	leaktest.Check(t)
	const bearer = "base64url.bearer.authorization.k8s.io."
	var rewriterSaw, serverSaw atomic.Value
	serverSaw.Store("")
	f, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(r *http.Request, _ watchcodec.Request) watchcodec.Rewriter {
		rewriterSaw.Store(r.Header.Get("Authorization"))
		return seeAll
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := wiretest.NewServer(f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serverSaw.Store(r.Header.Get("Authorization"))
		if protocols := r.Header.Get("Sec-Websocket-Protocol"); protocols != "" {
			t.Errorf("the server receives the subprotocols %s", protocols)
		}
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
	})))
	defer s.Close()
	for _, test := range []struct {
		offered, authorization, want, chosen string
		status                               int
	}{
		{bearer + "dG9rZW4" + ", v1", "", "Bearer token", "v1", 101},
		{"v1,v2, " + bearer + "dG9rZW4", "", "Bearer token", "v1", 101},
		{bearer + "dG9rZW4" + ", v1", "Bearer other", "Bearer other", "v1", 101},
		{"v1", "Bearer other", "Bearer other", "v1", 101},
		{"", "", "", "", 101},
		{bearer + "dG9rZW4", "", "", "", 401},
		{bearer + "dG9rZW4=, v1", "", "", "", 401},
		{bearer + "dG9r, " + bearer + "dG9r, v1", "", "", "", 401},
		{bearer + "YQ0KYjogYw, v1", "", "", "", 401},
	} {
		serverSaw.Store("")
		h := http.Header{}
		if test.offered != "" {
			h.Set("Sec-Websocket-Protocol", test.offered)
		}
		if test.authorization != "" {
			h.Set("Authorization", test.authorization)
		}
		conn, resp, err := dialWatch(t, s, "/api/v1/pods?watch=1", h)
		if resp == nil || resp.StatusCode != test.status || serverSaw.Load() != test.want {
			t.Errorf("%q: %v %v; the server has received %q, want %q", test.offered, resp, err, serverSaw.Load(), test.want)
			continue
		}
		if test.status == 101 {
			if got := resp.Header.Get("Sec-Websocket-Protocol"); got != test.chosen || rewriterSaw.Load() != test.want {
				t.Errorf("%q: %q is chosen, want %q; the Rewriter has seen %q", test.offered, got, test.chosen, rewriterSaw.Load())
			}
			conn.Close()
		}
	}
}
