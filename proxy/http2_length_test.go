package proxy_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A request over HTTP/2 whose Content-Length is not that of its content is malformed, and must not be forwarded
// (RFC 9113 section 8.1.1). net/http takes a field that is no number for 0, looks at the first of several, and at none
// where the stream ends with the header: the target would get an empty request as a whole one. It does not wait for the
// content of a request that declares none either.
func TestHTTP2LengthIsNotThatOfTheContent(t *testing.T) {
	onPaths(t, testHTTP2LengthIsNotThatOfTheContent)
}
func testHTTP2LengthIsNotThatOfTheContent(t *testing.T, via path) {
	leaktest.Check(t)
	for _, test := range []struct {
		name    string
		lengths []string
		data    []string // DATA frames, of which the last one ends the stream; nil: the header ends it
		want    string   // the status
	}{
		{"no content", []string{"5"}, nil, "400"},
		{"no number", []string{"3x"}, []string{"abc"}, "400"},
		{"negative", []string{"-3"}, []string{"abc"}, "400"},
		{"two that differ", []string{"3", "5"}, []string{"abc"}, "400"},
		{"a list that differs", []string{"3, 5"}, []string{"abc"}, "400"},
		{"two that are equal", []string{"3", "3"}, []string{"abc"}, "200"},
		{"none", nil, []string{"abc"}, "200"},
		{"nothing", []string{"0"}, nil, "200"},
		{"nothing, and an empty frame", []string{"0"}, []string{""}, "200"},
		{"nothing, and content", []string{"0"}, []string{"abc"}, "400"},
		{"nothing, and content behind an empty frame", []string{"0", "0"}, []string{"", "abc"}, "400"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var requests atomic.Int32
			target := wiretest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			var failed failures
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
			status := postFrames(t, p, test.lengths, test.data)
			reset := test.want == "400" && test.data != nil && status == "protocol_error" // net/http's server met the DATA first
			if status != test.want && !reset {
				t.Errorf("the client got %q, want %s", status, test.want)
			}
			if test.want == "200" {
				return
			}
			failed.await(t)
			if n := requests.Load(); n > 0 {
				t.Errorf("the target got %d requests", n)
			}
			e := failed.only(t)
			// The server that has met the DATA first ends the request's context with the stream. Package server responds before.
			gone := (reset || wiretest.OwnServer() && test.data != nil) && e.Kind == culvert.ClientGone
			if e.Kind != culvert.BadRequest && !gone || e.Target != "" {
				t.Errorf("failure %v, %#v", e, e)
			}
		})
	}
}

// A client that declares no content and does not end its stream may take as long for that as for any read of a body.
func TestHTTP2NoContentThatDoesNotEnd(t *testing.T) { onPaths(t, testHTTP2NoContentThatDoesNotEnd) }
func testHTTP2NoContentThatDoesNotEnd(t *testing.T, via path) {
	leaktest.Check(t)
	var requests atomic.Int32
	target := wiretest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), ReadTimeout: soon})
	if status := postFrames(t, p, []string{"0"}, []string{}); status != "408" {
		t.Errorf("the client got %q", status)
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the target got %d requests", n)
	}
}

// A client may send the content that it has declared, and more behind it: the target must not have got a whole request by then.
func TestHTTP2MoreContentThanItsLength(t *testing.T) { onPaths(t, testHTTP2MoreContentThanItsLength) }
func testHTTP2MoreContentThanItsLength(t *testing.T, via path) {
	leaktest.Check(t)
	large := []string{strings.Repeat("a", 16<<10), strings.Repeat("b", 16<<10), strings.Repeat("c", 16<<10)} // sent as it comes
	for _, test := range []struct {
		name   string
		length int
		data   []string
		whole  bool
	}{
		{"small", 3, []string{"abc", "de"}, false},
		{"small, without an end", 3, []string{"abc", "de", "f"}, false},
		{"large", 48 << 10, append(large[:3:3], "de"), false},
		{"small, the end in a frame of its own", 3, []string{"abc", ""}, true},
		{"large, the end in a frame of its own", 48 << 10, append(large[:3:3], ""), true},
	} {
		for range 10 { // where the first read has what was declared, and nothing more, it is a matter of time
			t.Run(test.name, func(t *testing.T) {
				var whole atomic.Int32
				target := wiretest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if n, err := io.Copy(io.Discard, r.Body); err == nil && n == int64(test.length) {
						whole.Add(1)
					}
				}))
				var failed failures
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
				status := postFrames(t, p, []string{strconv.Itoa(test.length)}, test.data)
				if test.whole {
					if status != "200" || whole.Load() != 1 {
						t.Errorf("the client got %q, the target %d whole requests", status, whole.Load())
					}
					return
				}
				failed.await(t)
				if e := failed.only(t); status == "200" || e.TargetSide() {
					t.Errorf("the client got %q, failure %v", status, e)
				}
				if whole.Load() != 0 {
					t.Error("the target got a whole request")
				}
			})
		}
	}
}

// postFrames sends a POST with the given Content-Length fields and DATA frames, and returns the response's status. The last
// frame ends the stream, where data is nil the header.
func postFrames(t *testing.T, h http.Handler, lengths, data []string) string {
	t.Helper()
	conn := wiretest.NewFrames(t, h)
	var fields []string
	for _, length := range lengths {
		fields = append(fields, "content-length", length)
	}
	conn.Post(data == nil, fields...)
	for i, piece := range data {
		conn.Data(i == len(data)-1, piece)
	}
	return conn.Status()
}

// Trailers behind a body that was declared as empty are forwarded, behind a chunked one.
func TestHTTP2TrailersBehindNoContent(t *testing.T) { onPaths(t, testHTTP2TrailersBehindNoContent) }
func testHTTP2TrailersBehindNoContent(t *testing.T, via path) {
	leaktest.Check(t)
	type seen struct {
		length   int64
		body     string
		trailers http.Header
	}
	got := make(chan seen, 1)
	target := wiretest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.ContentLength, string(body), r.Trailer}
	}))
	for name, o := range map[string]proxy.Options{"streamed": {}, "buffered": {RequestBuffer: &proxy.Buffer{Memory: 10}}} {
		o.Upstream = groupAt(t, upstream.Options{}, target)
		conn := wiretest.NewFrames(t, newProxy(t, via, o))
		conn.Post(false, "content-length", "0", "trailer", "x-sum")
		conn.Trailers("x-sum", "42")
		if status := conn.Status(); status != "200" {
			t.Fatalf("%s: the client got %q", name, status)
		}
		if s := <-got; s.length != -1 || s.body != "" || s.trailers.Get("X-Sum") != "42" {
			t.Errorf("%s: the target got %+v", name, s)
		}
	}
}
