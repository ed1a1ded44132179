package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// Each kind of refusal closes the connection, and the hook is called once, though more requests follow. What is refused
// in a header section is tested where that is parsed.
func TestRefusals(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a\r\n"
	for _, c := range []struct {
		raw    string
		status int
		line   string
	}{
		{"nonsense\r\n\r\n", 400, "nonsense"},
		{"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "GET /%zz HTTP/1.1"},
		{"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400, "GET a HTTP/1.1"},
		{get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "GET / HTTP/1.1"},
		{"GET /" + strings.Repeat("a", 6000) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "GET /" + strings.Repeat("a", 4<<10-len("GET /"))},
		{get + "Expect: more\r\n\r\n", 417, "GET / HTTP/1.1"},
		{"GET /" + strings.Repeat("a", 4500) + " HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417, "GET /" + strings.Repeat("a", 4<<10-len("GET /"))},
		{get + "X: " + strings.Repeat("a", 6000) + "\r\n\r\n", 431, "GET / HTTP/1.1"},
		{get + "Transfer-Encoding: gzip\r\n\r\n", 501, "GET / HTTP/1.1"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "PRI * HTTP/2.0"},
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			refused := make(chan *Refusal, 10)
			s := handler(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
			s.MaxHeaderBytes, s.OnRefused = 5000, func(_ http.ResponseWriter, r *Refusal) { refused <- r }
			p := wiretest.Dial(t, start(t, s))
			p.Send(c.raw + get + "\r\nnonsense\r\n\r\n")
			p.End()
			resp, body := p.Response("GET")
			if resp.StatusCode != c.status || !resp.Close || !strings.HasPrefix(body, resp.Status) {
				t.Errorf("response %s, close %v, %q", resp.Status, resp.Close, body)
			}
			r := wiretest.Await(t, refused, "refusal")
			if r.Status != c.status || r.Line != c.line || r.Request.RemoteAddr != p.LocalAddr().String() || r.Err == nil {
				t.Errorf("refusal %+v", r)
			}
			if rest := p.Ended(); rest != "" || len(refused) > 0 {
				t.Errorf("rest %q, %d more refusals", rest, len(refused))
			}
		})
	}
}

// A client that sends a long request whose header is refused can read the response: the connection is not reset under it.
func TestRefusedClientReadsItsResponse(t *testing.T) {
	p := wiretest.Dial(t, start(t, handler(func(http.ResponseWriter, *http.Request) {})))
	p.Send("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("a", 8<<20))
	p.Status(http.StatusBadRequest)
	p.Close()
}

// What is no HTTP is refused when it is received, and not when the time for a header is over.
func TestRefusedBeginning(t *testing.T) {
	for _, raw := range []string{"\x16\x03\x01\x02\x00", "\x16\x03\n\x02", "SSH-2.0-OpenSSH_9.9\r\n", "GET / HTTP/9.9\r\nHost:"} {
		p := wiretest.Dial(t, start(t, handler(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })))
		p.Send(raw[:2])
		p.Send(raw[2:])
		if resp, _ := p.Response("GET"); resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusHTTPVersionNotSupported {
			t.Errorf("%q: %s", raw, resp.Status)
		}
		p.End()
	}
}

// A line end behind a POST is no request: the client may leave behind it.
func TestLineEndIsNotRefused(t *testing.T) {
	for _, end := range []string{"\r\n", "\n", "\r\n\r\n"} {
		s := handler(func(http.ResponseWriter, *http.Request) {})
		s.OnRefused = func(_ http.ResponseWriter, r *Refusal) { t.Errorf("%q: refused %+v", end, r) }
		p := wiretest.Dial(t, start(t, s))
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" + end)
		p.Status(http.StatusOK)
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		p.Status(http.StatusOK)
		p.Send(end)
		p.End()
		if rest := p.Ended(); rest != "" {
			t.Errorf("%q: rest %q", end, rest)
		}
	}
}

// The hook is given what was understood of the request, and may write the response.
func TestRefusedResponse(t *testing.T) {
	for _, c := range []struct{ name, raw, understood string }{
		{"line", "GET / HTTP\r\nHost: a\r\n\r\n", `   "" map[]`},
		{"field", "GET /b HTTP/1.1\r\nHost: a\r\nX: 1\r\nY : 2\r\nZ: 3\r\n\r\n", `GET /b HTTP/1.1 "a" map[X:[1]]`},
		{"body", "POST /b HTTP/1.0\r\nHost: a\r\nX: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", `POST /b HTTP/1.0 "a" map[X:[1]]`},
		{"expectation", "PUT /%2F HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 3\r\n\r\nabc", `PUT /%2F HTTP/1.1 "a" map[]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := handler(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
			s.OnRefused = func(w http.ResponseWriter, r *Refusal) {
				q := r.Request
				n, err := io.Copy(io.Discard, q.Body)
				if n != 0 || err != nil || q.ContentLength != 0 || q.URL == nil || q.Context().Err() != nil {
					t.Errorf("content of %d bytes, %v, length %d, URL %v, context %v", n, err, q.ContentLength, q.URL, q.Context().Err())
				}
				w.Header().Set("X-Refused", fmt.Sprintf("%s %s %s %q %v", q.Method, q.RequestURI, q.Proto, q.Host, q.Header))
				w.WriteHeader(499)
				_, _ = io.WriteString(w, "refused")
			}
			p := wiretest.Dial(t, start(t, s))
			p.Send(c.raw)
			resp, body := p.Response("GET")
			if got := resp.Header.Get("X-Refused"); got != strings.TrimSpace(c.understood) || resp.StatusCode != 499 || body != "refused" {
				t.Errorf("%d %q %q", resp.StatusCode, got, body)
			}
			if resp.ProtoMinor == 1 && !resp.Close {
				t.Error("the response does not end the connection")
			}
			p.End()
			if rest := p.Ended(); rest != "" {
				t.Errorf("rest %q", rest)
			}
		})
	}
}

// A hook that panics ends its connection, and no other.
func TestPanicOfOnRefused(t *testing.T) {
	s := handler(func(http.ResponseWriter, *http.Request) {})
	s.OnRefused = func(http.ResponseWriter, *Refusal) { panic(http.ErrAbortHandler) }
	addr := start(t, s)
	p := wiretest.Dial(t, addr)
	p.Send("nonsense\r\n\r\n")
	if got := p.Ended(); got != "" {
		t.Errorf("received %q", got)
	}
	p = wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	p.Status(http.StatusOK)
}

// A hook that changes the Refusal does not change the response.
func TestRefusalIsTheHooks(t *testing.T) {
	for raw, want := range map[string]string{"nonsense\r\n\r\n": "HTTP/1.1 400 ", "GET /half HTTP/1.1\r\nHost:": ""} {
		log := new(lines)
		s := handler(func(http.ResponseWriter, *http.Request) {})
		s.ErrorLog = newLogger(log)
		s.OnRefused = func(_ http.ResponseWriter, r *Refusal) { r.Status = 499 - r.Status }
		p := wiretest.Dial(t, start(t, s))
		p.Send(raw)
		p.End()
		if got := p.Ended(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: received %q", raw, got)
		}
		_ = s.Shutdown(t.Context()) // behind it nothing is logged any more
		if log.String() != "" {
			t.Errorf("%q: logged %s", raw, log)
		}
	}
}

// The hook is called with a header that was not received as a whole; the client receives nothing.
func TestUnfinishedHeader(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%t", late), func(t *testing.T) {
			refused := make(chan *Refusal, 10)
			s := handler(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
			if late {
				s.ReadHeaderTimeout = 50 * time.Millisecond
			}
			s.OnRefused = func(w http.ResponseWriter, r *Refusal) {
				_, _ = io.WriteString(w, "nothing reads this")
				refused <- r
			}
			p := wiretest.Dial(t, start(t, s))
			p.Send("GET /half HTTP/1.1\r\nX: 1\r\nHost:")
			if !late {
				p.End()
			}
			r := wiretest.Await(t, refused, "refusal")
			if r.Status != 0 || r.Line != "GET /half HTTP/1.1" || errors.Is(r.Err, os.ErrDeadlineExceeded) != late {
				t.Errorf("refusal %+v", r)
			}
			if q := r.Request; q.Method != "GET" || q.RequestURI != "/half" || q.Header.Get("X") != "1" || len(q.Header) != 1 {
				t.Errorf("understood %s %s %v", q.Method, q.RequestURI, q.Header)
			}
			if got := p.Ended(); got != "" {
				t.Errorf("received %q", got)
			}
		})
	}
}

// A connection that a server closes has no refused request, though half a header was received.
func TestClosedWithinAHeader(t *testing.T) {
	s := handler(func(http.ResponseWriter, *http.Request) {})
	s.OnRefused = func(_ http.ResponseWriter, r *Refusal) { t.Errorf("refusal %+v", r) }
	active := make(chan struct{})
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateActive {
			close(active)
		}
	}
	p := wiretest.Dial(t, start(t, s))
	p.Send("GET /half HTTP/1.1\r\nHost:")
	wiretest.Await(t, active, "the first byte")
	_ = s.Close()
	p.Ended()
}
