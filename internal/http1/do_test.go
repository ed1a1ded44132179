package http1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/wiretest"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// scripted is a pool whose connections are pipes: script runs for each, from the first one, 1, on.
type scripted struct {
	*http1.Pool
	conns atomic.Int32
	near  func(net.Conn) net.Conn // nil: the pool's end of a pipe as it is
}

// newScripted returns a pool within a bubble. The test waits for its scripts.
func newScripted(t *testing.T, o http1.Options, script func(conn int32, p *wiretest.Peer)) *scripted {
	s := new(scripted)
	var running sync.WaitGroup
	o.MaxIdle, o.IdleTimeout, o.MaxHeader = 4, time.Minute, 1<<10
	o.Addr = func(r *http.Request) (http1.Addr, error) { return http1.Addr{Name: r.URL.Host}, nil }
	o.Dial = func(context.Context, http1.Addr) (net.Conn, error) {
		near, far := net.Pipe()
		n := s.conns.Add(1)
		running.Go(func() {
			defer far.Close()
			script(n, wiretest.NewPeer(t, far))
		})
		if s.near != nil {
			return s.near(near), nil
		}
		return near, nil
	}
	s.Pool = http1.NewPool(o)
	t.Cleanup(func() {
		s.CloseIdle()
		running.Wait()
	})
	return s
}

// send runs a call and returns its response's status and body. The call is released.
func (s *scripted) send(c *http1.Call) (status int, body string, err error) {
	if err := c.Prepare(); err != nil {
		return 0, "", err
	}
	resp, err := s.Do(c)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	b, err := io.ReadAll(resp.Body)
	c.Release()
	return resp.StatusCode, string(b), err
}

// request returns a request; a body of "" is none, and one with a length < 0 has none that is declared.
func request(ctx context.Context, method string, body io.Reader, length int64) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, "http://a:1/path", body)
	if err != nil {
		panic(err)
	}
	r.ContentLength = length
	return r
}

func text(ctx context.Context, method, body string) *http.Request {
	if body == "" {
		return request(ctx, method, nil, 0)
	}
	return request(ctx, method, strings.NewReader(body), int64(len(body)))
}

// journal notes the calls of hooks.
type journal struct {
	mu      sync.Mutex
	calls   []string
	interim func(status int, header http.Header) // nil: nothing more
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, fmt.Sprintf(format, args...))
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.calls, ", ")
}

func (j *journal) Connected() { j.note("connected") }
func (*journal) Dialling()    {}

func (j *journal) Streaming() { j.note("streaming") }
func (j *journal) Withheld()  { j.note("withheld") }
func (j *journal) BodyDone()  { j.note("body done") }
func (j *journal) FirstByte() { j.note("first byte") }
func (j *journal) Interim(status int, header http.Header) {
	j.note("%d %v", status, header)
	if j.interim != nil {
		j.interim(status, header)
	}
}

// A small body is sent in one piece with its header, without a goroutine; one that is long, separate or of unknown length
// behind it, unless it has been received.
func TestBodyInOneWrite(t *testing.T) {
	for name, test := range map[string]struct {
		body     string
		length   int64
		separate bool
		whole    bool // in one write
		ready    bool
	}{
		"small":                      {"body", 4, false, true, false},
		"small, separate":            {"body", 4, true, false, false},
		"small, separate, received":  {"body", 4, true, true, true},
		"no length":                  {"body", -1, false, false, false},
		"no length, received":        {"body", -1, false, true, true},
		"more than a piece":          {strings.Repeat("x", 40<<10), 40 << 10, false, false, false},
		"a piece of it was received": {"body" + strings.Repeat("x", 40<<10), 4 + 40<<10, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := make(chan string, 1)
				s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
					piece := make([]byte, 64<<10)
					n, _ := p.Conn.Read(piece)
					first <- string(piece[:n])
					go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
					time.Sleep(time.Millisecond) // the body
					p.Send(ok)
					time.Sleep(time.Minute)
				})
				var hooks journal
				var from io.ReadCloser = io.NopCloser(strings.NewReader(test.body))
				if test.ready {
					from = ready{io.MultiReader(strings.NewReader(test.body[:4]), strings.NewReader(test.body[4:]))}
				}
				c := &http1.Call{Request: request(t.Context(), "POST", from, test.length), Separate: test.separate, Hooks: &hooks}
				if status, body, err := s.send(c); status != 200 || body != "ok" || err != nil {
					t.Fatalf("%d %q, %v", status, body, err)
				}
				header, sent, _ := strings.Cut(<-first, "\r\n\r\n")
				whole := test.body[:min(4, len(test.body))]
				if !test.ready {
					whole = test.body
				} else if test.length < 0 {
					whole = "4\r\nbody\r\n"
				}
				if got := sent == whole; got != test.whole || !strings.HasPrefix(header, "POST /path HTTP/1.1\r\nHost: a:1\r\n") {
					t.Errorf("the first write is %.80q with a body of %d bytes", header, len(sent))
				}
				want := "connected, first byte"
				if !test.whole || test.ready {
					want = "connected, streaming, body done, first byte"
				}
				if got := hooks.String(); got != want {
					t.Errorf("hooks: %s, want %s", got, want)
				}
			})
		})
	}
}

// ready is a body whose next bytes were received.
type ready struct{ io.Reader }

func (ready) Close() error   { return nil }
func (ready) Ready() bool    { return true }
func (ready) Received() bool { return false }

// The bytes of each call are counted, headers included, also over a connection that was used before.
func TestBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lengths := make(chan int, 3)
		s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
			for _, body := range []string{"", "body", "4\r\nbody\r\n0\r\n\r\n"} {
				header := p.Header()
				p.Receive(body)
				lengths <- len(header) + len(body)
				p.Send(ok)
			}
		})
		for i, r := range []*http.Request{text(t.Context(), "GET", ""), text(t.Context(), "POST", "body"), request(t.Context(), "POST", strings.NewReader("body"), -1)} {
			c := &http1.Call{Request: r}
			if status, _, err := s.send(c); status != 200 || err != nil {
				t.Fatalf("%d: %d, %v", i, status, err)
			}
			if sent, received := c.Bytes(); sent != int64(<-lengths) || received != int64(len(ok)) {
				t.Errorf("%d: %d sent, %d received", i, sent, received)
			}
		}
	})
}

// What ends under a request on a kept connection is sent again, over a fresh one, if the target may get it twice. Everything else
// is an error, which says if the connection was a kept one.
func TestStaleConnection(t *testing.T) {
	safe := func(*http.Request) bool { return true }
	for name, test := range map[string]struct {
		method, body string
		repeatable   func(*http.Request) bool
		kept         bool
		partly       string // a response that is begun before the end
		status       int    // 0: an error
		stale        bool
	}{
		"kept":                    {"GET", "", safe, true, "", 200, false},
		"kept, not repeatable":    {"PUT", "", func(*http.Request) bool { return false }, true, "", 0, true},
		"kept, without a policy":  {"GET", "", nil, true, "", 0, true},
		"kept, with a body":       {"PUT", "body", safe, true, "", 0, true},
		"kept, response begun":    {"GET", "", safe, true, "HTTP/1.1 200", 0, false},
		"fresh":                   {"GET", "", safe, false, "", 0, false},
		"fresh, response partial": {"GET", "", safe, false, "HTTP/1.1 200", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted(t, http1.Options{}, func(n int32, p *wiretest.Peer) {
					if n == 1 && test.kept {
						p.Header()
						p.Send(ok)
					}
					if n == 1 {
						p.Header()
						p.Receive(test.body)
						p.Send(test.partly)
						return
					}
					p.Header()
					p.Send(ok)
				})
				if test.kept {
					if status, _, err := s.send(&http1.Call{Request: text(t.Context(), "GET", "")}); status != 200 {
						t.Fatalf("the first: %d, %v", status, err)
					}
				}
				status, _, err := s.send(&http1.Call{Request: text(t.Context(), test.method, test.body), Repeatable: test.repeatable})
				var failed *http1.Error
				if status != test.status || errors.As(err, &failed) != (test.status == 0) {
					t.Fatalf("status %d, %v", status, err)
				}
				if failed != nil && (failed.Stale != test.stale || !errors.Is(err, io.ErrUnexpectedEOF)) {
					t.Errorf("stale %v, %v", failed.Stale, err)
				}
				conns := int32(1)
				if test.status == 200 {
					conns = 2
				}
				if n := s.conns.Load(); n != conns {
					t.Errorf("%d connections, want %d", n, conns)
				}
			})
		})
	}
}

// The body of a request with Expect: 100-continue waits for the target: it is sent when the target requests it or is
// silent, and is not when the target responds.
func TestExpect(t *testing.T) {
	for name, test := range map[string]struct {
		responses []string // the first one before the body is received
		status    int
		received  bool
		after     time.Duration
		hooks     string
	}{
		"granted": {[]string{"HTTP/1.1 100 Continue\r\n\r\n", ok}, 200, true, 0, "connected, streaming, withheld, first byte, 100 map[], body done"},
		"silent":  {[]string{"", ok}, 200, true, http1.ExpectTimeout, "connected, streaming, withheld, body done, first byte"},
		"refused": {[]string{"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"}, 417, false, 0, "connected, streaming, withheld, first byte, body done"},
		"hinted":  {[]string{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", ok}, 200, true, http1.ExpectTimeout, "connected, streaming, withheld, first byte, 103 map[Link:[</a>]], body done"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got string
				s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
					p.Header()
					synctest.Wait() // the body is withheld
					p.Send(test.responses[0])
					if len(test.responses) == 1 {
						got = p.Ended()
						return
					}
					body := make([]byte, 4)
					_, _ = io.ReadFull(p.R, body)
					got = string(body)
					synctest.Wait()
					p.Send(test.responses[1])
					p.Ended()
				})
				var hooks journal
				r := text(t.Context(), "POST", "body")
				r.Header.Set("Expect", "100-continue")
				start := time.Now()
				if status, _, err := s.send(&http1.Call{Request: r, Separate: true, Hooks: &hooks}); status != test.status || err != nil {
					t.Errorf("status %d, %v", status, err)
				}
				if took := time.Since(start); took != test.after {
					t.Errorf("took %v", took)
				}
				s.CloseIdle()
				synctest.Wait()
				if (got == "body") != test.received || hooks.String() != test.hooks {
					t.Errorf("the target got %q; hooks: %v", got, hooks.String())
				}
			})
		})
	}
}

// Interim responses are passed on one by one, and leave nothing in the header of the final one.
func TestInterimResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
			p.Header()
			p.Send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\nX-A: b\r\n\r\nHTTP/1.1 200 OK\r\nX-C: d\r\nContent-Length: 2\r\n\r\nok")
			p.Ended()
		})
		header := http.Header{}
		hooks := journal{interim: func(status int, h http.Header) {
			if len(header) > 0 {
				t.Errorf("%d: the final header is %v", status, header)
			}
			h.Set("Hook", "yes") // which is the hook's
		}}
		if status, body, err := s.send(&http1.Call{Request: text(t.Context(), "GET", ""), Header: header, Hooks: &hooks}); status != 200 || body != "ok" {
			t.Fatalf("%d %q, %v", status, body, err)
		}
		if want := "connected, first byte, 103 map[Link:[</a>]], 102 map[X-A:[b]]"; hooks.String() != want {
			t.Errorf("hooks: %v", hooks.String())
		}
		if want := "map[Content-Length:[2] X-C:[d]]"; fmt.Sprint(header) != want {
			t.Errorf("header %v", header)
		}
	})
}

// What a target may not send before its response ends the call, and its connection.
func TestInterimLimits(t *testing.T) {
	hint := "HTTP/1.1 103 Early Hints\r\nLink: </" + strings.Repeat("a", 200) + ">\r\n\r\n"
	for name, test := range map[string]struct {
		sent string
		want string
	}{
		"more than MaxHeader":   {strings.Repeat(hint, 8), http1.ErrHeaderTooLarge.Error()},
		"switching protocols":   {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "status 101"},
		"with a bad length":     {"HTTP/1.1 103 Early Hints\r\nContent-Length: x\r\n\r\n", `http1: bad Content-Length "x"`},
		"no status":             {"HTTP/1.1 099 None\r\n\r\n", "status 099"},
		"an end behind one":     {hint, io.ErrUnexpectedEOF.Error()},
		"an end within one":     {hint[:50], io.ErrUnexpectedEOF.Error()},
		"nothing":               {"", io.ErrUnexpectedEOF.Error()},
		"something else":        {"SSH-2.0-OpenSSH\r\n\r\n", `http1: malformed status line "SSH-2.0-OpenSSH"`},
		"a malformed field":     {"HTTP/1.1 200 OK\r\n: b\r\n\r\n", `http1: malformed header line ": b"`},
		"different lengths":     {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", `http1: different lengths ["1" "2"]`},
		"an announced length":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n", `http1: bad trailer "Content-Length"`},
		"an unsupported coding": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", `http1: unsupported transfer encoding ["gzip"]`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed := make(chan struct{})
				s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
					p.Header()
					_, _ = io.WriteString(p.Conn, test.sent)
					if test.want != io.ErrUnexpectedEOF.Error() {
						p.Ended()
					}
					close(closed)
				})
				header := http.Header{}
				_, _, err := s.send(&http1.Call{Request: text(t.Context(), "GET", ""), Header: header})
				if err == nil || err.Error() != test.want {
					t.Errorf("error %v, want %s", err, test.want)
				}
				if len(header) > 0 {
					t.Errorf("header %v", header)
				}
				<-closed
			})
		})
	}
}

// HeaderTimeout bounds the header with all interim responses before it, but for the time that the hook takes.
func TestHeaderTimeout(t *testing.T) {
	const pause, hints = 3 * time.Second, 4
	for name, test := range map[string]struct {
		timeout, hook time.Duration
		status        int
	}{
		"enough":                {20 * time.Second, 0, 200},
		"too little":            {5 * time.Second, 0, 0},
		"enough, and slow hook": {14 * time.Second, 10 * time.Second, 200},
		"none":                  {0, 0, 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted(t, http1.Options{HeaderTimeout: test.timeout}, func(_ int32, p *wiretest.Peer) {
					_ = p.SetDeadline(time.Time{})
					p.Header()
					for range hints {
						if _, err := io.WriteString(p.Conn, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
							return
						}
						time.Sleep(pause)
					}
					_, _ = io.WriteString(p.Conn, ok)
				})
				hooks := journal{interim: func(int, http.Header) { time.Sleep(test.hook) }}
				status, _, err := s.send(&http1.Call{Request: text(t.Context(), "GET", ""), Hooks: &hooks})
				if status != test.status {
					t.Errorf("status %d, %v", status, err)
				}
				var timeout net.Error
				if status == 0 && !(errors.As(err, &timeout) && timeout.Timeout()) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// A response may begin while the body is sent. Its connection is kept if the body has ended when the call is released, and
// closed otherwise.
func TestResponseBesideAnUpload(t *testing.T) {
	for name, ends := range map[string]bool{"the body ends": true, "the body does not end": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var closed atomic.Bool
				s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
					p.Header()
					p.Receive("3\r\none\r\n")
					p.Send(ok)
					p.Ended()
					closed.Store(true)
				})
				reads, body := io.Pipe()
				go func() { fmt.Fprint(body, "one") }()
				var hooks journal
				c := &http1.Call{Request: request(t.Context(), "POST", reads, -1), Hooks: &hooks}
				if err := c.Prepare(); err != nil {
					t.Fatal(err)
				}
				resp, err := s.Do(c)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
				if strings.Contains(hooks.String(), "body done") {
					t.Error("the body has ended")
				}
				if ends {
					body.Close()
					synctest.Wait()
				}
				c.Release()
				synctest.Wait()
				if closed.Load() == ends {
					t.Errorf("closed: %v", closed.Load())
				}
				body.Close() // an upload outlives its call
				synctest.Wait()
				if want := "connected, streaming, first byte, body done"; hooks.String() != want {
					t.Errorf("hooks: %v", hooks.String())
				}
			})
		})
	}
}
