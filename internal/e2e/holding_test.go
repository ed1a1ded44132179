package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// holding is a server in front of an upstream that responds to a request for .../held when let is
// called, and to all others at once.
type holding struct {
	*server
	t       *testing.T
	arrived chan struct{}
	release chan struct{} // one for each request that may end
	held    []*holder
}

// holder is a connection on which a request is held, and a channel for its response.
type holder struct {
	*conversation
	arrived chan response
}

// conversation is a connection that several exchanges are made over.
type conversation struct {
	net.Conn
	r *bufio.Reader
}

// startHolding starts one of the two servers; {{UP}} in conf is the upstream.
func startHolding(t *testing.T, start starter, conf string) (h *holding, filled string) {
	t.Helper()
	h = &holding{t: t, arrived: make(chan struct{}, 16), release: make(chan struct{}, 16)}
	up := httptest.NewServer(http.HandlerFunc(h.respond))
	t.Cleanup(up.Close)
	filled = strings.ReplaceAll(conf, "{{UP}}", up.URL)
	h.server = start(t, filled, nil)
	t.Cleanup(func() { close(h.release) })
	return h, filled
}

func (h *holding) respond(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/held"):
		h.arrived <- struct{}{}
		<-h.release
	case path == "/tunnel":
		h.tunnel(w)
		return
	}
	fmt.Fprint(w, "the upstream's")
}

// tunnel switches the protocol and waits for the client's end.
func (h *holding) tunnel(w http.ResponseWriter) {
	conn, rest, err := w.(http.Hijacker).Hijack()
	if err != nil {
		h.t.Error(err)
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	_, _ = io.Copy(io.Discard, rest)
}

// connect is a connection from the address local, "" for any.
func (h *holding) connect(local string) *conversation {
	h.t.Helper()
	conn := dial(h.t, h.address, local)
	h.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &conversation{conn, bufio.NewReader(conn)}
}

// send sends a request without waiting for its response.
func (h *holding) send(c *conversation, raw string) {
	h.t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		h.t.Fatal(err)
	}
}

// next reads a response.
func (h *holding) next(c *conversation, method string) response {
	h.t.Helper()
	got, err := readResponse(c.r, method)
	if err != nil {
		h.t.Fatal(err)
	}
	return got
}

// try sends a request over a connection of its own and returns its response, or false if it is held.
func (h *holding) try(local, raw string) (got response, done bool) {
	h.t.Helper()
	c := &holder{h.connect(local), make(chan response, 1)}
	h.send(c.conversation, raw)
	go func() {
		got, err := readResponse(c.r, "GET")
		if err != nil {
			got.None = noResponse(err)
		}
		c.arrived <- got
	}()
	select {
	case <-h.arrived:
		h.held = append(h.held, c)
		return response{}, false
	case got = <-c.arrived:
		h.over(c.conversation, got)
		return got, true
	}
}

// over returns when the last request on c that has a response has ended for the server too: the
// next one gets a response, or the connection ends.
func (h *holding) over(c *conversation, last response) {
	h.t.Helper()
	defer c.Close()
	if last.Close {
		_, _ = io.Copy(io.Discard, c.r)
		return
	}
	h.send(c, get("/free"))
	h.next(c, "GET")
}

// let lets the upstream respond to all held requests.
func (h *holding) let() {
	h.t.Helper()
	for range h.held {
		h.release <- struct{}{}
	}
	for _, c := range h.held {
		got := <-c.arrived
		if got.Status != 200 {
			h.t.Errorf("what was held: %+v", got)
		}
		h.over(c.conversation, got)
	}
	h.held = nil
}

// starter starts one of the two servers.
type starter = func(*testing.T, string, map[string]string) *server

// sameOnBoth compares line by line what do finds with nginx and with ours.
func sameOnBoth(t *testing.T, startNginx starter, do func(*testing.T, starter) []string) {
	t.Helper()
	theirs, ours := do(t, startNginx), do(t, startCulvert)
	for i := range max(len(theirs), len(ours)) {
		a, b := "nothing", "nothing"
		if i < len(theirs) {
			a = theirs[i]
		}
		if i < len(ours) {
			b = ours[i]
		}
		if a != b {
			t.Errorf("line %d\nnginx:   %s\nculvert: %s", i+1, a, b)
		}
	}
}
