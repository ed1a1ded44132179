package proxy_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// faulty is a cell of the matrix.
type faulty struct {
	phase, fault string
	o            upstream.Options
	body         time.Duration // proxy.Options.BodyTimeout
	target       func(t *testing.T) string
	response     string            // its first line; "" for 200 with a whole body
	kind         culvert.ErrorKind // of the failure
	cut          bool              // the header was sent, and the body is broken off
}

const (
	chunkedHead   = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
	wholeResponse = chunkedHead + "5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"
)

// script returns a target that reads a header section, sends sent, and then calls end.
func script(sent string, end func(*wiretest.Peer)) func(t *testing.T) string {
	return func(t *testing.T) string {
		return wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Send(sent)
			end(p)
		})
	}
}

// slowly sends byte by byte.
func slowly(sent string) func(t *testing.T) string {
	return func(t *testing.T) string {
		return wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			for _, b := range []byte(sent) {
				p.Send(string(b))
			}
			p.Ended()
		})
	}
}

func closes(*wiretest.Peer)   {}
func resets(p *wiretest.Peer) { p.Reset() }
func stalls(p *wiretest.Peer) { p.Ended() }

// raw returns a target that reads no header section, for handshakes.
func raw(do func(*wiretest.Peer)) func(t *testing.T) string {
	return func(t *testing.T) string { return wiretest.Target(t, do) }
}

// TestFaultMatrix breaks each phase of an exchange in each way and checks what the
// client sees, what the error says, whether the target's health has suffered, and
// that nothing is left behind.
func TestFaultMatrix(t *testing.T) { onPaths(t, testFaultMatrix) }
func testFaultMatrix(t *testing.T, via path) {
	secure := upstream.Options{Scheme: "https"}
	hurried := upstream.Options{Scheme: "https", DialTimeout: soon}
	impatient := upstream.Options{HeaderTimeout: soon}
	const (
		bad  = "HTTP/1.1 502 Bad Gateway"
		late = "HTTP/1.1 504 Gateway Timeout"
	)
	half := chunkedHead + "5\r\nhel"
	beforeTrailer := chunkedHead + "5\r\nhello\r\n0\r\nX-S"
	for _, f := range []faulty{
		{"dial", "refuse", upstream.Options{}, 0, func(t *testing.T) string { return wiretest.Unused(t) }, bad, culvert.DialFailed, false},
		{"dial", "stall", upstream.Options{DialTimeout: time.Nanosecond}, 0, func(t *testing.T) string { return wiretest.Unused(t) }, late, culvert.Timeout, false},
		{"dial", "garbage", upstream.Options{}, 0, func(*testing.T) string { return "no.such.host.invalid:80" }, bad, culvert.DialFailed, false},
		{"TLS", "refuse", secure, 0, tlsTarget, bad, culvert.DialFailed, false},
		{"TLS", "reset", secure, 0, raw(func(p *wiretest.Peer) { p.R.Peek(1); p.Reset() }), bad, culvert.DialFailed, false},
		{"TLS", "stall", hurried, 0, raw(stalls), late, culvert.Timeout, false},
		{"TLS", "garbage", secure, 0, raw(func(p *wiretest.Peer) { p.R.Peek(1); p.Send(wholeResponse); p.Ended() }), bad, culvert.DialFailed, false},
		{"head", "refuse", upstream.Options{}, 0, script("", closes), bad, culvert.HeaderInvalid, false},
		{"head", "reset", upstream.Options{}, 0, script("HTTP/1.1 200", resets), bad, culvert.HeaderInvalid, false},
		{"head", "stall", impatient, 0, script("HTTP/1.1 200", stalls), late, culvert.Timeout, false},
		{"head", "garbage", upstream.Options{}, 0, script("200 OK HTTP/1.1\r\n\r\n", stalls), bad, culvert.HeaderInvalid, false},
		{"head", "slow", upstream.Options{}, 0, slowly(wholeResponse), "", 0, false},
		{"body", "refuse", upstream.Options{}, 0, script(half, closes), "", culvert.BodyBroken, true},
		{"body", "reset", upstream.Options{}, 0, script(half, resets), "", culvert.BodyBroken, true},
		{"body", "stall", upstream.Options{}, soon, script(half, stalls), "", culvert.Timeout, true},
		{"body", "garbage", upstream.Options{}, 0, script(chunkedHead+"5\r\nhello\r\nno size\r\n", stalls), "", culvert.BodyBroken, true},
		{"body", "slow", upstream.Options{}, 5 * time.Second, slowly(wholeResponse), "", 0, false},
		{"trailer", "refuse", upstream.Options{}, 0, script(beforeTrailer, closes), "", culvert.BodyBroken, true},
		{"trailer", "reset", upstream.Options{}, 0, script(beforeTrailer, resets), "", culvert.BodyBroken, true},
		{"trailer", "stall", upstream.Options{}, soon, script(beforeTrailer, stalls), "", culvert.Timeout, true},
		{"trailer", "garbage", upstream.Options{}, 0, script(chunkedHead+"5\r\nhello\r\n0\r\nno colon\r\n\r\n", stalls), "", culvert.BodyBroken, true},
		{"trailer", "slow", upstream.Options{}, 0, slowly(wholeResponse), "", 0, false},
	} {
		t.Run(f.phase+" "+f.fault, func(t *testing.T) { f.check(t, via) })
	}
}

func (f faulty) check(t *testing.T, via path) {
	leaktest.Check(t)
	var failed failures
	target := f.target(t)
	group := groupAt(t, f.o, target)
	p := newProxy(t, via, proxy.Options{Upstream: group, BodyTimeout: f.body, OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	head := client.Header()
	line, _, _ := strings.Cut(head, "\r\n")
	switch {
	case f.response != "":
		if line != f.response {
			t.Errorf("the client got %q, want %q", line, f.response)
		}
	case f.cut:
		if rest := client.Ended(); line != "HTTP/1.1 200 OK" || strings.Contains(rest, "\r\n0\r\n") {
			t.Errorf("the client got %q and %q, which looks whole", line, rest)
		}
	default:
		if body := readChunked(t, client); line != "HTTP/1.1 200 OK" || body != "helloX-Sum: 7\r\n\r\n" {
			t.Errorf("the client got %q and %q", line, body)
		}
	}
	fails := 0
	for s := range group.Targets() {
		fails += s.Fails
	}
	if f.kind == 0 {
		if len(failed.all) != 0 || fails != 0 {
			t.Errorf("failures %v, the target has %d", failed.all, fails)
		}
		return
	}
	failed.await(t)
	if e := failed.only(t); e.Kind != f.kind || e.Target != target || e.HeaderSent != f.cut || e.BytesSent == (f.phase == "dial" || f.phase == "TLS") || fails != 1 {
		t.Errorf("failure %#v, the target has %d", e, fails)
	}
}

// readChunked reads a chunked body with its trailers, without its framing.
func readChunked(t *testing.T, p *wiretest.Peer) string {
	t.Helper()
	var b strings.Builder
	for {
		size, err := p.R.ReadString('\n')
		if err != nil {
			t.Errorf("chunk: %v", err)
			return b.String()
		}
		if size == "0\r\n" {
			b.WriteString(p.Header())
			return b.String()
		}
		piece := make([]byte, int(size[0]-'0')+2)
		if _, err := io.ReadFull(p.R, piece); err != nil {
			t.Errorf("chunk: %v", err)
			return b.String()
		}
		b.WriteString(strings.TrimSuffix(string(piece), "\r\n"))
	}
}

// tlsTarget returns a target with a certificate of an unknown authority.
func tlsTarget(t *testing.T) string {
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = wiretest.Quiet()
	wiretest.StartTLS(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
