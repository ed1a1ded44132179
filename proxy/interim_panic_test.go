package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// panickyWriter is a filter's writer that panics at an interim response.
type panickyWriter struct {
	http.ResponseWriter
	bug      *panicsOnce
	deadline func(time.Time) // called with each write deadline; nil: those are the writer's
}

func (w panickyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w panickyWriter) WriteHeader(status int) {
	if status < 200 {
		w.bug.call()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w panickyWriter) SetWriteDeadline(t time.Time) error {
	if w.deadline == nil {
		return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
	}
	w.deadline(t)
	return nil
}

// A filter's writer that panics at an interim response ends its own exchange, and neither the program nor another exchange,
// though net/http's transport relays that on a goroutine of its own.
func TestPanicAtAnInterimResponse(t *testing.T) { onPaths(t, testPanicAtAnInterimResponse) }
func testPanicAtAnInterimResponse(t *testing.T, via path) {
	for name, protocol := range map[string]upstream.Protocol{"HTTP/1.1": upstream.HTTP1, "h2c": upstream.H2C} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			target := echoTarget(t, protocol, http.StatusEarlyHints)
			bug := new(panicsOnce)
			p := newProxy(t, via, proxy.Options{Upstream: groupOf(t, upstream.Options{Protocol: protocol}, upstream.Target{Addr: target, MaxFails: 1})})
			addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p.ServeHTTP(panickyWriter{w, bug, nil}, r)
			}))
			first := wiretest.Dial(t, addr)
			first.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			first.Ended()
			if !bug.called.Load() {
				t.Error("nothing has panicked")
			}
			second := wiretest.Dial(t, addr)
			second.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			second.Status(http.StatusEarlyHints)
			second.Status(http.StatusOK)
		})
	}
}

// Behind such a panic the header is that of the final response again, and nothing reaches the writer behind its handler:
// net/http's writer of an HTTP/2 stream would end the program then.
func TestWriterBehindAPanicAtAnInterimResponse(t *testing.T) {
	onPaths(t, testWriterBehindAPanicAtAnInterimResponse)
}
func testWriterBehindAPanicAtAnInterimResponse(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		group := groupAt(t, upstream.Options{DialContext: pipeTo(func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			time.Sleep(time.Minute)
		})}, "192.0.2.1:80")
		p := newProxy(t, via, proxy.Options{Upstream: group})
		ended := false
		w := panickyWriter{httptest.NewRecorder(), new(panicsOnce), func(time.Time) {
			if ended {
				t.Error("a deadline is set behind the handler")
			}
		}}
		w.Header().Set("X-Filter", "kept")
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.ProtoMajor, r.ProtoMinor = 2, 0
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			p.ServeHTTP(w, r)
		}()
		ended = true
		if h := w.Header(); len(h) != 1 || h.Get("X-Filter") != "kept" {
			t.Errorf("the header is %v", h)
		}
		_ = group.Close()
		time.Sleep(time.Hour)
	})
}
