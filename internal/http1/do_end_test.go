package http1_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A connection is kept behind a response if nothing remains on it.
func TestRelease(t *testing.T) {
	for name, test := range map[string]struct {
		method, response string
		read             bool
		close            bool // Request.Close
		kept             bool
	}{
		"a length":            {"GET", ok, true, false, true},
		"chunks":              {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", true, false, true},
		"no content":          {"GET", "HTTP/1.1 204 No Content\r\n\r\n", false, false, true},
		"a HEAD":              {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", false, false, true},
		"not read":            {"GET", ok, false, false, false},
		"the target closes":   {"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true, false, false},
		"HTTP/1.0":            {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", true, false, false},
		"the request closes":  {"GET", ok, true, true, false},
		"bytes behind it":     {"GET", ok + "HTTP/1.1 200 OK\r\n\r\n", true, false, false},
		"two kinds of length": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closes := make(chan bool, 1)
				s := newScripted(t, http1.Options{}, func(n int32, p *wiretest.Peer) {
					if n > 1 {
						return
					}
					closes <- strings.Contains(p.Header(), "Connection: close")
					p.Send(test.response)
					p.Ended()
				})
				c := &http1.Call{Request: text(t.Context(), test.method, "")}
				c.Request.Close = test.close
				if err := c.Prepare(); err != nil {
					t.Fatal(err)
				}
				resp, err := s.Do(c)
				if err != nil {
					t.Fatal(err)
				}
				if test.read {
					if body, err := io.ReadAll(resp.Body); string(body) != "ok" || err != nil {
						t.Errorf("%q, %v", body, err)
					}
				}
				c.Release()
				c.Close() // does nothing
				next, err := s.Get(t.Context(), http1.Addr{Name: "a:1"}, false)
				if err != nil {
					t.Fatal(err)
				}
				if next.Reused != test.kept || <-closes != test.close {
					t.Errorf("kept: %v", next.Reused)
				}
				next.Close()
			})
		})
	}
}

// A connection that was interrupted is not kept, also if all of the response had been received before.
func TestReleaseOfAnInterruptedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, http1.Options{}, func(n int32, p *wiretest.Peer) {
			if n == 1 {
				p.Header()
				p.Send(ok)
				p.Ended()
			}
		})
		c := &http1.Call{Request: text(t.Context(), http.MethodGet, "")}
		if err := c.Prepare(); err != nil {
			t.Fatal(err)
		}
		resp, err := s.Do(c)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != "ok" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		c.Release()
		next, err := s.Get(t.Context(), http1.Addr{Name: "a:1"}, false)
		if err != nil {
			t.Fatal(err)
		}
		if next.Reused {
			t.Error("the connection is kept")
		}
		next.Close()
	})
}

// A connection on which a request has announced by its own field Connection that it closes carries no other one (RFC 9112
// section 9.6).
func TestRequestThatAnnouncesTheEnd(t *testing.T) {
	for option, kept := range map[string]bool{"close": false, "x-a, Close": false, "x-a": true} {
		t.Run(option, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted(t, http1.Options{}, func(n int32, p *wiretest.Peer) {
					if n > 1 {
						return
					}
					p.Header()
					p.Send(ok) // and leaves the connection open
					p.Ended()
				})
				r := text(t.Context(), "GET", "")
				r.Header["Connection"] = []string{option}
				if _, body, err := s.send(&http1.Call{Request: r}); body != "ok" || err != nil {
					t.Fatalf("%q, %v", body, err)
				}
				next, err := s.Get(t.Context(), http1.Addr{Name: "a:1"}, false)
				if err != nil {
					t.Fatal(err)
				}
				if next.Reused != kept {
					t.Errorf("kept: %v", next.Reused)
				}
				next.Close()
			})
		})
	}
}

// The last exchange of a connection is announced to the target, in one piece with a small body.
func TestLastExchangeIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, http1.Options{MaxRequests: 1}, func(_ int32, p *wiretest.Peer) {
			piece := make([]byte, 1<<10)
			n, _ := p.Conn.Read(piece)
			if got := string(piece[:n]); !strings.Contains(got, "\r\nConnection: close\r\n") || !strings.HasSuffix(got, "\r\n\r\nbody") {
				t.Errorf("received %q", got)
			}
			p.Send(ok)
		})
		for range 2 {
			if status, _, err := s.send(&http1.Call{Request: text(t.Context(), "POST", "body")}); status != 200 {
				t.Errorf("status %d, %v", status, err)
			}
		}
		if n := s.conns.Load(); n != 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// The end of the request's context ends a call wherever it waits, and the read of a response's body.
func TestContextEnds(t *testing.T) {
	for name, script := range map[string]func(p *wiretest.Peer){
		"before the response":        func(p *wiretest.Peer) { p.Ended() },
		"in the header":              func(p *wiretest.Peer) { p.Header(); p.Send("HTTP/1.1 200"); p.Ended() },
		"behind an interim response": func(p *wiretest.Peer) { p.Header(); p.Send("HTTP/1.1 103 Early Hints\r\n\r\n"); p.Ended() },
		"in the body":                func(p *wiretest.Peer) { p.Header(); p.Send(strings.TrimSuffix(ok, "k")); p.Ended() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted(t, http1.Options{HeaderTimeout: time.Minute}, func(_ int32, p *wiretest.Peer) { script(p) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, _, err := s.send(&http1.Call{Request: text(ctx, "GET", "")})
				if took := time.Since(start); err == nil || took != time.Second {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// Nor does a target that does not accept a long header hold a call.
func TestContextEndsWhileTheHeaderIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, http1.Options{WriteTimeout: time.Minute}, func(_ int32, p *wiretest.Peer) { time.Sleep(10 * time.Second) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := text(ctx, "GET", "")
		r.Header.Set("Cookie", strings.Repeat("a", 8<<10))
		start := time.Now()
		_, _, err := s.send(&http1.Call{Request: r})
		if took := time.Since(start); err == nil || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A response whose body could only be cut, since the context has ended when its header is received, is none.
func TestContextHasEndedBeforeTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
			p.Header()
			cancel() // which nothing watches yet
			p.Send(strings.TrimSuffix(ok, "ok"))
			p.Ended()
		})
		if status, _, err := s.send(&http1.Call{Request: text(ctx, "GET", "")}); !errors.Is(err, context.Canceled) {
			t.Errorf("status %d, %v", status, err)
		}
	})
}

// A body that fails ends the call with its error at once, also if the target is silent; one that is not as long as declared
// does, too.
func TestBrokenBody(t *testing.T) {
	broken := errors.New("the client has gone")
	for name, test := range map[string]struct {
		body   io.Reader
		length int64
		want   error
	}{
		"inline":               {io.MultiReader(strings.NewReader("bo"), failing{broken}), 4, broken},
		"inline, too long":     {strings.NewReader("body"), 2, http1.ErrBodyLength},
		"inline, too short":    {strings.NewReader("bo"), 4, io.ErrUnexpectedEOF},
		"streamed":             {io.MultiReader(strings.NewReader("bo"), failing{broken}), -1, broken},
		"streamed, too long":   {strings.NewReader(strings.Repeat("x", 50<<10)), 40 << 10, http1.ErrBodyLength},
		"streamed, too short":  {strings.NewReader("bo"), 40 << 10, http1.ErrBodyLength},
		"streamed, with bytes": {&last{"bo", broken}, -1, broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) { p.Ended() })
				_, _, err := s.send(&http1.Call{Request: request(t.Context(), "POST", io.NopCloser(test.body), test.length)})
				var failed *http1.Error
				if !errors.Is(err, test.want) || !errors.As(err, &failed) || failed.Stale {
					t.Errorf("error %v, want %v", err, test.want)
				}
			})
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// last fails together with its only bytes.
type last struct {
	text string
	err  error
}

func (l *last) Read(p []byte) (int, error) { return copy(p, l.text), l.err }

// A panic of a hook closes the connection.
func TestPanicOfAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
			p.Header()
			p.Send("HTTP/1.1 103 Early Hints\r\n\r\n")
			p.Ended()
		})
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("panic %v", v)
			}
		}()
		hooks := journal{interim: func(int, http.Header) { panic("a bug") }}
		_, _, err := s.send(&http1.Call{Request: text(t.Context(), "GET", ""), Hooks: &hooks})
		t.Errorf("returned %v", err)
	})
}

// What can't be sent, or is changed by net/http on its way, is refused before a connection is made.
func TestPrepare(t *testing.T) {
	for name, change := range map[string]func(r *http.Request){
		"method":  func(r *http.Request) { r.Method = "GET /" },
		"target":  func(r *http.Request) { r.URL.Opaque = "/a b" },
		"field":   func(r *http.Request) { r.Header["A b"] = []string{"c"} },
		"value":   func(r *http.Request) { r.Header["A"] = []string{"b\r\nC: d"} },
		"trailer": func(r *http.Request) { r.Trailer = http.Header{"Content-Length": nil} },
		"host":    func(r *http.Request) { r.Host = "b\u00fccher.example" },
		"zone":    func(r *http.Request) { r.Host = "[fe80::1%25eth0]:80" },
	} {
		r := text(t.Context(), "GET", "")
		change(r)
		c := http1.Call{Request: r}
		if err := c.Prepare(); err == nil || (err == http1.ErrOther) != (name == "host" || name == "zone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
