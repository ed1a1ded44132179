package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// What the handler has left of a body is read if it is short, and the connection kept. If it is long the client can read the
// response while it sends.
func TestBodyLeft(t *testing.T) {
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begin" {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
		}
		_, _ = io.WriteString(w, "response")
	}))
	chunk := "2710\r\n" + strings.Repeat("a", 10000) + "\r\n"
	for _, c := range []struct {
		name, path, header, body string
		kept                     bool
	}{
		{"short", "/", "Content-Length: 10000", strings.Repeat("a", 10000), true},
		{"short, begun", "/begin", "Content-Length: 10000", strings.Repeat("a", 10000), true},
		{"all that is read", "/", "Content-Length: 262144", strings.Repeat("a", drainBytes), true},
		{"one more", "/", "Content-Length: 262145", strings.Repeat("a", drainBytes+1), false},
		{"long", "/", "Content-Length: 8000000", strings.Repeat("a", 8000000), false},
		{"long, begun", "/begin", "Content-Length: 8000000", strings.Repeat("a", 8000000), false},
		{"short chunks", "/", "Transfer-Encoding: chunked", strings.Repeat(chunk, 5) + "0\r\nA: b\r\n\r\n", true},
		{"long chunks", "/", "Transfer-Encoding: chunked", strings.Repeat(chunk, 800) + "0\r\n\r\n", false},
		{"malformed chunks", "/", "Transfer-Encoding: chunked", "5\r\nhelloX\r\n0\r\n\r\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := wiretest.Dial(t, addr)
			p.Send("POST " + c.path + " HTTP/1.1\r\nHost: a\r\n" + c.header + "\r\n\r\n" + c.body)
			if c.kept {
				p.Send("GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			} else {
				p.End()
			}
			if resp, body := p.Response("POST"); resp.StatusCode != 200 || body != "response" {
				t.Errorf("response %s %q", resp.Status, body)
			}
			if c.kept {
				p.Status(200)
			}
			if rest := p.Ended(); rest != "" {
				t.Errorf("rest %q", rest)
			}
		})
	}
}

// The 100 (Continue) is sent once, at the first read, and never behind a final response.
func TestContinue(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(w http.ResponseWriter, r *http.Request)
		want  string
	}{
		{"read", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }, "HTTP/1.1 100 Continue\r\n\r\n"},
		{"server's", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				clientside.ServerOf(w).WriteContinue()
				clientside.ServerOf(w).WriteContinue()
			}
			_, _ = io.ReadAll(r.Body)
		}, "HTTP/1.1 100 Continue\r\n\r\n"},
		{"handler's", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				w.WriteHeader(http.StatusContinue)
			}
			_, _ = io.ReadAll(r.Body)
		}, "HTTP/1.1 100 Continue\r\n\r\n"},
		{"copied", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, "HTTP/1.1 100 Continue\r\n\r\n"},
		{"not read", func(http.ResponseWriter, *http.Request) {}, ""},
		{"responded", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_, _ = r.Body.Read(make([]byte, 1))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := wiretest.Dial(t, start(t, handler(c.serve)))
			p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
			p.Receive(c.want)
			if c.name == "responded" {
				p.Send("hello")
			}
			if c.want != "" {
				p.Send("helloGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
				p.Status(http.StatusOK)
			} else {
				p.End()
			}
			resp, _ := p.Response("GET")
			if resp.StatusCode != http.StatusOK || !resp.Close {
				t.Errorf("response %s, close %v", resp.Status, resp.Close)
			}
			if rest := p.Ended(); rest != "" {
				t.Errorf("rest %q", rest)
			}
		})
	}
}

// A read of the body that is under way when the handler returns fails, and the response is sent.
func TestReadEndsWithItsHandler(t *testing.T) {
	failed := make(chan error, 2)
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 2)) // the client is about to wait
		go func() {
			_, err := r.Body.Read(make([]byte, 10))
			failed <- err
			_, err = r.Body.Read(make([]byte, 10))
			failed <- err
		}()
		for b := r.Body.(*body); b.mu.TryLock(); time.Sleep(time.Millisecond) {
			b.mu.Unlock()
		}
	}))
	p := wiretest.Dial(t, addr)
	p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
	if err := wiretest.Await(t, failed, "error"); err == nil {
		t.Error("the read has succeeded")
	}
	if err := wiretest.Await(t, failed, "error"); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("later read: %v", err)
	}
	p.Status(http.StatusOK)
	p.Close()
}

// Request and response are independent: a handler reads a request whose response it has begun.
func TestFullDuplex(t *testing.T) {
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		for b := make([]byte, 1); ; {
			n, err := r.Body.Read(b)
			_, _ = w.Write(b[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	}))
	p := wiretest.Dial(t, addr)
	p.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	p.Header()
	p.Receive("1\r\na\r\n")
	p.Send("1\r\nb\r\n")
	p.Receive("1\r\nb\r\n")
	p.Send("0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
	p.Receive("0\r\n\r\n")
	p.Status(http.StatusOK)
}
