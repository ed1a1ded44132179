package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// seen is what one side of a gateway has seen, by names: "header X-Tenant", "body".
type seen map[string]string

func (s seen) headers(what string, h http.Header) {
	for name, values := range h {
		s[what+" "+name] = strings.Join(values, "|")
	}
}

// backend is the application. It keeps what the last request looked like.
type backend struct {
	last     chan seen     // has room for one
	released chan struct{} // ends responses that wait
}

func newBackend() *backend {
	return &backend{last: make(chan seen, 1), released: make(chan struct{})}
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s := seen{"method": r.Method, "uri": r.RequestURI, "host": r.Host, "body": string(body)}
	s.headers("header", r.Header)
	s.headers("trailer", r.Trailer)
	b.last <- s
	switch strings.TrimPrefix(r.URL.Path, "/base") {
	case "/page":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Server", "app/1.0")
		io.WriteString(w, "<html><body>"+strings.Repeat("long ", 1000)+"</body></html>")
	case "/early":
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "content")
		w.Header().Set("X-Sum", "42")
	case "/broken":
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "/internal":
		w.Header().Set("X-Internal", "yes")
	case "/huge-header":
		w.Header().Set("X-Huge", strings.Repeat("x", 80<<10))
	case "/gzip":
		w.Header().Set("Content-Type", "text/plain")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			io.WriteString(w, "plain")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "plain")
		z.Close()
	case "/slow":
		select {
		case <-b.released:
		case <-r.Context().Done():
		}
	case "/socket":
		conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.TextMessage, []byte("welcome"))
		_, _, _ = conn.ReadMessage()
	case "/other-protocol":
		if r.Header.Get("Upgrade") != "other" {
			w.WriteHeader(http.StatusUpgradeRequired)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	case "/bad-handshake": // a 101 for a handshake that it has not understood
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: no\r\n\r\n")
	default:
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s, %d bytes", r.Method, len(body))
	}
}

// exchange sends the bytes of a request to addr and returns what the client sees.
func exchange(t *testing.T, addr, request string) seen {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	reader := bufio.NewReader(conn)
	s := seen{}
	for {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("no response to %.60q: %v", request, err)
		}
		if response.StatusCode == http.StatusEarlyHints {
			s.headers("early", response.Header)
			continue
		}
		s["status"] = response.Status
		response.Header.Del("Date")
		s.headers("header", response.Header)
		if response.StatusCode == http.StatusSwitchingProtocols {
			return s
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			s["broken"] = "yes"
		}
		if response.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		s["body"] = string(body)
		s.headers("trailer", response.Trailer)
		return s
	}
}

// differences returns the names of what differs, sorted.
func differences(side string, before, after seen) (names []string) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for name := range all {
		a, had := before[name]
		b, has := after[name]
		if a != b || had != has {
			names = append(names, side+" "+name)
		}
	}
	slices.Sort(names)
	return names
}
