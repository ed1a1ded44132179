package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// refusals are the manners of a target of HTTP/2 to leave a request unprocessed.
var refusals = map[string]func(f *http2.Framer, stream uint32) error{
	"GOAWAY": func(f *http2.Framer, stream uint32) error {
		return f.WriteGoAway(max(2, stream)-2, http2.ErrCodeNo, nil)
	},
	"GOAWAY, with error": func(f *http2.Framer, stream uint32) error {
		return f.WriteGoAway(max(2, stream)-2, http2.ErrCodeEnhanceYourCalm, nil)
	},
	"REFUSED_STREAM": func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	},
}

// http2Over is HTTP/2 with TLS or without.
type http2Over struct {
	name    string
	options upstream.Options
	script  func(t *testing.T, respond func(f *http2.Framer, stream uint32) error) string
}

var http2Overs = []http2Over{
	{"h2c", upstream.Options{Protocol: upstream.H2C, Balance: upstream.First()}, http2Script},
	{"h2", upstream.Options{Protocol: upstream.HTTP2, Balance: upstream.First(), Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}}, http2TLSScript},
}

// refusingTarget returns a target that refuses the first n requests, and how many it was sent.
func refusingTarget(t *testing.T, over http2Over, n int64, refuse func(f *http2.Framer, stream uint32) error) (addr string, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	return over.script(t, func(f *http2.Framer, stream uint32) error {
		if sent.Add(1) <= n {
			return refuse(f, stream)
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
	}), sent
}

// A request of any method that a target of HTTP/2 refuses unprocessed is sent once an attempt, and again by the proxy's own
// rules (RFC 9113 section 8.7): to another target, or once more to the last one that is available. For a POST without a body net/http's
// transport does not distinguish a graceful GOAWAY from a reset after which the request may have been processed.
func TestRefusedUnprocessed(t *testing.T) { onPaths(t, testRefusedUnprocessed) }
func testRefusedUnprocessed(t *testing.T, via path) {
	const always = 1 << 40
	for kind, refuse := range refusals {
		for name, test := range map[string]struct {
			method, body string
			refused      []int64 // how often, by each target
			tries        int
			status       int
			attempts     int
		}{
			"for ever":               {"GET", "", []int64{always}, 0, 502, 2},
			"for ever, body":         {"POST", "abc", []int64{always}, 0, 502, 2},
			"for ever, no body":      {"POST", "", []int64{always}, 0, 502, 2},
			"for ever, one try":      {"GET", "", []int64{always}, 1, 502, 1},
			"by each target":         {"GET", "", []int64{always, always, always}, 0, 502, 4},
			"by each target, tries":  {"GET", "", []int64{always, always, always}, 2, 502, 2},
			"once":                   {"GET", "", []int64{1}, 0, 200, 2},
			"once, body":             {"POST", "abc", []int64{1}, 0, 200, 2},
			"by one target":          {"GET", "", []int64{always, 0}, 0, 200, 2},
			"by one target, body":    {"POST", "abc", []int64{always, 0}, 2, 200, 2},
			"by one target, no body": {"POST", "", []int64{always, 0}, 0, 200, 2},
		} {
			for _, over := range http2Overs {
				t.Run(over.name+" "+kind+" "+name, func(t *testing.T) {
					leaktest.Check(t)
					var addrs []string
					var counts []*atomic.Int64
					for _, n := range test.refused {
						addr, sent := refusingTarget(t, over, n, refuse)
						addrs, counts = append(addrs, addr), append(counts, sent)
					}
					p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, over.options, addrs...), RequestBuffer: &proxy.Buffer{}, Retry: proxy.Retry{Tries: test.tries}})
					if kind == "GOAWAY" && test.method == "POST" && test.body == "" {
						test.status, test.attempts = http.StatusBadGateway, 1
					}
					status, record := recorded(t, p, test.method, test.body)
					sent := 0
					for _, n := range counts {
						sent += int(n.Load())
					}
					// One that the transport has dialled for the attempt before counts as a kept connection.
					if status != test.status || len(record.Attempts) != test.attempts || sent < test.attempts || sent > 2*test.attempts {
						t.Errorf("status %d, sent %d times in %d attempts, want %d, %d: %v", status, sent, len(record.Attempts), test.status, test.attempts, record.Err)
					}
				})
			}
		}
	}
}

// recorded sends a request through p.
func recorded(t *testing.T, p *proxy.Proxy, method, body string) (status int, record *culvert.Result) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ctx, record = filters.WithResult(ctx)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body)))
	return w.Code, record
}

// What a kept connection refuses is sent over another one in the same attempt: a target that ends its connections refuses none.
func TestRefusedOnAKeptConnection(t *testing.T) { onPaths(t, testRefusedOnAKeptConnection) }
func testRefusedOnAKeptConnection(t *testing.T, via path) {
	for _, over := range http2Overs {
		t.Run(over.name, func(t *testing.T) {
			leaktest.Check(t)
			addr := over.script(t, func(f *http2.Framer, stream uint32) error {
				if stream > 1 {
					return f.WriteGoAway(stream-2, http2.ErrCodeNo, nil)
				}
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
			})
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, over.options, addr), Retry: proxy.Retry{Tries: 1}})
			for range 4 {
				if status, record := recorded(t, p, "GET", ""); status != http.StatusOK || len(record.Attempts) != 1 {
					t.Errorf("status %d in %d attempts: %v", status, len(record.Attempts), record.Err)
				}
			}
		})
	}
}

// A target that resets a request's stream with an error has perhaps processed it: what is not idempotent is sent once, whether
// the transport would send it again over another connection, or can't have one.
func TestResetIsNoRefusal(t *testing.T) { onPaths(t, testResetIsNoRefusal) }
func testResetIsNoRefusal(t *testing.T, via path) {
	for name, test := range map[string]struct {
		kept bool // the connection
		dead bool // no other connection can be had to the target
	}{
		"fresh":                      {},
		"kept":                       {kept: true},
		"fresh, no other connection": {dead: true},
		"kept, no other connection":  {kept: true, dead: true},
	} {
		for _, over := range http2Overs {
			t.Run(over.name+" "+name, func(t *testing.T) {
				leaktest.Check(t)
				var posts, dials atomic.Int64
				sent := make(chan struct{}) // the POST, for the first time
				ok := http2.HeadersFrameParam{BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true}
				warm := test.kept
				resetting := over.script(t, func(f *http2.Framer, stream uint32) error {
					if warm {
						warm, ok.StreamID = false, stream
						return f.WriteHeaders(ok)
					}
					if posts.Add(1) == 1 {
						close(sent)
					}
					return f.WriteRSTStream(stream, http2.ErrCodeProtocol)
				})
				other, others := refusingTarget(t, over, 0, nil)
				o := over.options
				if test.dead {
					o.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if addr == resetting && dials.Add(1) > 1 {
							select { // net/http may dial behind a response before it has put the connection of that among the idle ones
							case <-sent:
							case <-ctx.Done():
							}
							return nil, errors.New("no more")
						}
						return new(net.Dialer).DialContext(ctx, network, addr)
					}
				}
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, o, resetting, other), Retry: proxy.Retry{Errors: true}})
				if test.kept {
					if status, record := recorded(t, p, "GET", ""); status != http.StatusOK {
						t.Fatalf("status %d: %v", status, record.Err)
					}
				}
				status, record := recorded(t, p, "POST", "")
				if status != http.StatusBadGateway || posts.Load() != 1 || others.Load() != 0 {
					t.Errorf("status %d, sent %d times to the first target and %d to the other one: %v", status, posts.Load(), others.Load(), record.Err)
				}
			})
		}
	}
}

// A kept connection over which a target of HTTP/2 resets a stream is not broken off: the target has got the request, and gets
// it once, where no other one is left, too. One that it ends may be one that was kept too long. (What has no body and is reset
// with PROTOCOL_ERROR, net/http's transport sends again itself.)
func TestResetOnAKeptConnection(t *testing.T) { onPaths(t, testResetOnAKeptConnection) }
func testResetOnAKeptConnection(t *testing.T, via path) {
	reset := func(code http2.ErrCode) func(f *http2.Framer, stream uint32) error {
		return func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) }
	}
	for _, test := range []struct {
		name, method, body string
		end                func(f *http2.Framer, stream uint32) error
		repeat             bool
	}{
		{"INTERNAL_ERROR", "GET", "", reset(http2.ErrCodeInternal), false},
		{"INTERNAL_ERROR, body", "PUT", "abc", reset(http2.ErrCodeInternal), false},
		{"CANCEL", "GET", "", reset(http2.ErrCodeCancel), false},
		{"NO_ERROR", "GET", "", reset(http2.ErrCodeNo), false},
		{"PROTOCOL_ERROR, body", "PUT", "abc", reset(http2.ErrCodeProtocol), false},
		{"end of the connection", "GET", "", func(*http2.Framer, uint32) error { return net.ErrClosed }, true},
		{"end of the connection, body", "PUT", "abc", func(*http2.Framer, uint32) error { return net.ErrClosed }, true},
	} {
		for _, over := range http2Overs {
			t.Run(over.name+" "+test.name, func(t *testing.T) {
				leaktest.Check(t)
				var ends atomic.Int64 // of streams, or of the connection
				addr := over.script(t, func(f *http2.Framer, stream uint32) error {
					if stream > 1 {
						ends.Add(1)
						return test.end(f, stream)
					}
					return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
				})
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, over.options, addr), Retry: proxy.Retry{Errors: true}})
				for n := 0; ends.Load() == 0 && n < 1000; n++ { // net/http may dial behind a response before it has put the connection of that among the idle ones
					status, record := recorded(t, p, test.method, test.body)
					want, attempts := http.StatusOK, 1
					switch {
					case ends.Load() == 0:
					case test.repeat:
						attempts = 2
					default:
						want = http.StatusBadGateway
					}
					if status != want || len(record.Attempts) != attempts || ends.Load() > 1 {
						t.Fatalf("status %d in %d attempts, ended %d times, want %d in %d: %v", status, len(record.Attempts), ends.Load(), want, attempts, record.Err)
					}
				}
				if ends.Load() == 0 {
					t.Error("no connection was used twice")
				}
			})
		}
	}
}

// repeating is an embedder's transport that sends a request again with what the first response requires.
type repeating struct{ http.RoundTripper }

func (r repeating) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	resp.Body.Close()
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "x")
	return r.RoundTripper.RoundTrip(req)
}

// A transport that sends a request again by its own rules is left to them.
func TestRepeatingTransport(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer target.Close()
	inner := new(http.Transport)
	defer inner.CloseIdleConnections()
	p := newProxy(t, anyPath, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target.Listener.Addr().String()), Transport: repeating{inner}})
	if status, record := recorded(t, p, "GET", ""); status != http.StatusOK {
		t.Errorf("status %d: %v", status, record.Err)
	}
}
