package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// Pipelined requests are served in order, wherever they are cut into packets.
func TestPipelining(t *testing.T) {
	const raw = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n" +
		"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\r\n" +
		"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: u\r\n\r\n" +
		"GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /5"
	serve := func(w http.ResponseWriter, r *http.Request) {
		_ = r.Context().Done()
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, r.URL.Path, string(body), r.Trailer.Get("T"), err)
	}
	exchange := func(t *testing.T, p *wiretest.Peer, cut int) {
		sent := make(chan bool)
		go func() {
			defer close(sent)
			_, _ = io.WriteString(p.Conn, raw[:cut])
			time.Sleep(time.Millisecond) // or both may arrive as one
			_, _ = io.WriteString(p.Conn, raw[cut:])
		}()
		for _, want := range []string{"/1<nil>", "/2hello<nil>", "/3hellou<nil>", "/4<nil>"} {
			if _, got := p.Response("GET"); got != want {
				t.Fatalf("cut at %d: %q, want %q", cut, got, want)
			}
		}
		p.Ended()
		p.Close()
		<-sent
	}
	addr := start(t, handler(serve))
	for cut := 1; cut < len(raw); cut++ {
		exchange(t, wiretest.Dial(t, addr), cut)
	}
	synctest.Test(t, func(t *testing.T) { // a pipe, where the pieces never arrive as one
		l, s := newPipes(), handler(serve)
		startOn(t, s, func() error { return s.Serve(l) })
		for cut := 1; cut < len(raw); cut++ {
			exchange(t, l.dial(t), cut)
		}
	})
}

// Bodies of all sizes around those of the buffer are whole, with a length and without one, over TLS as well.
func TestSizes(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := handler(func(w http.ResponseWriter, r *http.Request) {
			var size, pieces int
			var length, large bool
			fmt.Sscan(strings.ReplaceAll(r.URL.RawQuery, ",", " "), &size, &pieces, &length, &large)
			if large {
				w.Header().Set("X-Large", strings.Repeat("x", outSize))
			}
			if length {
				w.Header().Set("Content-Length", fmt.Sprint(size))
			}
			content := wiretest.Pattern(size)
			for i := range pieces {
				piece := content[i*size/pieces : (i+1)*size/pieces]
				if i%2 == 0 {
					_, _ = w.Write(piece)
				} else {
					_, _ = w.(io.StringWriter).WriteString(string(piece))
				}
				if i%5 == 4 {
					w.(http.Flusher).Flush()
				}
			}
		})
		p := dial(t, s, secure)
		for _, size := range []int{0, 1, 511, 512, 2048, outSize - frontRoom - 100, outSize - tailRoom, outSize - 1, outSize, outSize + 1, 3 * outSize, 100_000} {
			for _, pieces := range []int{1, 2, 7} {
				for _, length := range []bool{false, true} {
					for _, large := range []bool{false, true} {
						p.Send(fmt.Sprintf("GET /?%d,%d,%v,%v HTTP/1.1\r\nHost: a\r\n\r\n", size, pieces, length, large))
						resp, body := p.Response("GET")
						if length && resp.ContentLength != int64(size) {
							t.Errorf("length %d, want %d", resp.ContentLength, size)
						}
						wiretest.SameBytes(t, fmt.Sprint(secure, size, pieces, length, large), []byte(body), wiretest.Pattern(size))
					}
				}
			}
		}
	}
}

// The header's front grows where the handler's Connection is long.
func TestLongConnectionField(t *testing.T) {
	long := strings.Repeat("token,", 1000) + "token"
	addr := start(t, handler(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", long)
		w.Header().Set("X-A", "b")
		_, _ = io.WriteString(w, "hello")
	}))
	p := wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp, body := p.Response("GET")
	if resp.Header.Get("Connection") != long || resp.Header.Get("X-A") != "b" || body != "hello" {
		t.Errorf("%q %q", resp.Header, body)
	}
}

// Files and sockets are moved by the kernel where the framing permits, and arrive whole in any case.
func TestReadFrom(t *testing.T) {
	content := wiretest.Pattern(300_000)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(name)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		case "/part":
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:1000])
			_, _ = f.Seek(1000, io.SeekStart)
		case "/short":
			w.Header().Set("Content-Length", "1000")
			n, err := io.Copy(w, f)
			if n != 1000 || !errors.Is(err, http.ErrContentLength) {
				t.Errorf("%d bytes, %v", n, err)
			}
			return
		case "/piece":
			w.Header().Set("Content-Length", "1000")
			if n, err := io.CopyN(w, f, 1000); n != 1000 || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			return
		case "/served":
			http.ServeContent(w, r, "", time.Time{}, f)
			return
		}
		if n, err := io.Copy(w, f); err != nil && r.Method == "GET" {
			t.Errorf("%s: %d bytes, %v", r.URL.Path, n, err)
		}
	}
	for _, secure := range []bool{false, true} {
		p := dial(t, handler(serve), secure)
		for _, path := range []string{"/length", "/part", "/piece", "/served", "/chunked", "/short"} {
			if secure && path == "/short" {
				continue // a write that exceeds the length is refused as a whole
			}
			p.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
			resp, body := p.Response("GET")
			want := content
			if resp.ContentLength == 1000 {
				want = content[:1000]
			}
			wiretest.SameBytes(t, path, []byte(body), want)
		}
		if !secure {
			p.Ended() // the handler has written too much
			p = dial(t, handler(serve), secure)
		}
		p.Send("HEAD /length HTTP/1.1\r\nHost: a\r\n\r\nGET /length HTTP/1.0\r\n\r\n")
		_, _ = p.Response("HEAD")
		_, body := p.Response("GET")
		wiretest.SameBytes(t, "HTTP/1.0", []byte(body), content)
	}
}

// When the handler has returned, what it was given has no effect on the next request.
func TestNothingOutlivesItsHandler(t *testing.T) {
	var kept http.ResponseWriter
	var body io.ReadCloser
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		if kept == nil {
			kept, body = w, r.Body
			return
		}
		c := http.NewResponseController(kept)
		_, written := kept.Write([]byte("crossed"))
		_, _, hijacked := c.Hijack()
		_, read := body.Read(make([]byte, 1))
		_, from := kept.(io.ReaderFrom).ReadFrom(strings.NewReader("crossed"))
		for what, err := range map[string]error{"Write": written, "Hijack": hijacked, "Read": read, "ReadFrom": from, "Flush": c.Flush(),
			"SetReadDeadline": c.SetReadDeadline(deadline.Past), "SetWriteDeadline": c.SetWriteDeadline(deadline.Past)} {
			if err == nil || what != "Read" && !errors.Is(err, clientside.ErrEnded) {
				t.Errorf("%s: %v", what, err)
			}
		}
		kept.Header().Set("X-Crossed", "a")
		kept.WriteHeader(http.StatusTeapot)
		clientside.ServerOf(kept).WriteContinue()
		clientside.ServerOf(kept).CloseAfterResponse()
		_, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "own")
	}))
	p := wiretest.Dial(t, addr)
	for _, want := range []string{"", "own", "own"} {
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
		resp, got := p.Response("POST")
		if resp.StatusCode != http.StatusOK || got != want || resp.Header.Get("X-Crossed") != "" || resp.Close {
			t.Errorf("%s %q %q", resp.Status, resp.Header, got)
		}
	}
}

// Calls from other goroutines, while the handler returns and after it, are no data races, and do not hold the connection up.
func TestCallsWhileTheHandlerReturns(t *testing.T) {
	running := make(chan bool, 1000)
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		for _, f := range []func(){
			func() { _ = c.SetReadDeadline(time.Now().Add(time.Hour)) }, func() { _ = c.SetWriteDeadline(time.Now().Add(time.Hour)) },
			func() { _ = r.Context().Err() }, func() { _ = r.Context().Done() }, func() { _, _ = r.Body.Read(make([]byte, 1)) },
			func() { clientside.ServerOf(w).WriteContinue() }, func() { clientside.ServerOf(w).CloseAfterResponse() }, func() { _ = c.Flush() },
		} {
			go func() {
				for range 20 {
					f()
				}
				running <- false
			}()
		}
	}))
	for range 20 {
		p := wiretest.Dial(t, addr)
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		for range 8 {
			<-running
		}
		p.End()
		p.Ended()
	}
}

// A write that waits for the client ends with its handler.
func TestWriteEndsWithItsHandler(t *testing.T) {
	failed := make(chan error, 1)
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			_, err := w.Write(make([]byte, 64<<20)) // more than sockets hold
			failed <- err
		}()
		for rw := w.(*writer); rw.mu.TryLock(); time.Sleep(time.Millisecond) {
			rw.mu.Unlock()
		}
	}))
	p := wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := wiretest.Await(t, failed, "error"); err == nil {
		t.Error("no error")
	}
	p.Close()
}

// A deadline that a handler has set does not hit the next request.
func TestDeadlinesEndWithTheirRequest(t *testing.T) {
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/set" {
			c := http.NewResponseController(w)
			_, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "whole")
			w.(http.Flusher).Flush()
			if c.SetReadDeadline(deadline.Past) != nil || c.SetWriteDeadline(deadline.Past) != nil {
				t.Error("no deadlines")
			}
			return
		}
		if body, err := io.ReadAll(r.Body); string(body) != "hello" || err != nil {
			t.Errorf("%q %v", body, err)
		}
		_, _ = io.WriteString(w, "next")
	}))
	p := wiretest.Dial(t, addr)
	p.Send("GET /set HTTP/1.1\r\nHost: a\r\n\r\n")
	p.Status(http.StatusOK)
	p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel")
	time.Sleep(time.Millisecond) // that the handler may wait
	p.Send("lo")
	if _, body := p.Response("POST"); body != "next" {
		t.Errorf("%q", body)
	}
}

// A panic ends the connection and is logged, http.ErrAbortHandler is not. A response that has begun does not look whole.
func TestPanics(t *testing.T) {
	log := new(lines)
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begun" {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
		}
		if r.URL.Query().Has("abort") {
			panic(http.ErrAbortHandler)
		}
		panic("a fault")
	})
	s.ErrorLog = newLogger(log)
	addr := start(t, s)
	for _, c := range []struct{ line, want string }{
		{"GET /?abort HTTP/1.1", ""},
		{"GET /begun?abort HTTP/1.1", "5\r\nbegun\r\n"},
		{"GET /begun?abort HTTP/1.0", "reset"},
	} {
		p := wiretest.Dial(t, addr)
		p.Send(c.line + "\r\nHost: a\r\n\r\n")
		got, err := io.ReadAll(p.R)
		if _, body, _ := bytes.Cut(got, []byte("\r\n\r\n")); c.want != "reset" && (string(body) != c.want || err != nil) {
			t.Errorf("%s: %q %v", c.line, got, err)
		}
		var nerr net.Error
		if c.want == "reset" && (err == nil || errors.As(err, &nerr) && nerr.Timeout()) {
			t.Errorf("%s: %q %v", c.line, got, err)
		}
	}
	if log.String() != "" {
		t.Errorf("log %q", log)
	}
	p := wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if rest := p.Ended(); rest != "" || !strings.Contains(log.String(), "a fault") || !strings.Contains(log.String(), "TestPanics") {
		t.Errorf("%q, log %q", rest, log)
	}
}
