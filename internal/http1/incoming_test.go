package http1

import (
	"bufio"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/net/http/httpguts"
)

// noWait is a Waiter for readers that never wait.
type noWait struct{}

func (noWait) AwaitRest() {}

const maxTestHeader = 4 << 10

// parse reads a request's header section, from a reader that returns it in pieces if cut.
func parse(raw string, cut bool) (*Incoming, Framing, error) {
	in := new(Incoming)
	r := bufio.NewReader(strings.NewReader(raw))
	if cut {
		r = bufio.NewReader(iotest.OneByteReader(strings.NewReader(raw)))
		_, _ = r.Peek(1)
	} else {
		_, _ = r.Peek(min(len(raw), r.Size()))
	}
	if _, err := in.Read(r, maxTestHeader, noWait{}); err != nil {
		return in, Framing{}, err
	}
	f, err := in.Framing()
	return in, f, err
}

const get = "GET / HTTP/1.1\r\nHost: a\r\n"

// refused are requests that are not served, by the status of the response.
var refused = []struct {
	raw    string
	status int
}{
	{"GET /\r\nHost: a\r\n\r\n", 400},
	{"GET\r\n\r\n", 400},
	{"\r\n\r\n", 400},
	{" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400},
	{"GET / http/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400},
	{"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET /\r/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
	{"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
	{"GET / HTTP/1.1\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	{get + "X : a\r\n\r\n", 400},
	{get + "X\r\n\r\n", 400},
	{get + ": a\r\n\r\n", 400},
	{get + "X: a\r\n b\r\n\r\n", 400},
	{get + "X: a\r\n\tb\r\n\r\n", 400},
	{get + "X: a\r\n \r\n\r\n", 400},
	{"GET / HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n", 400},
	{get + "X: a\rb\r\n\r\n", 400},
	{get + "X: a\r\r\n\r\n", 400},
	{get + "X: a\x00\r\n\r\n", 400},
	{get + "X\x00: a\r\n\r\n", 400},
	{get + "X: \x7f\r\n\r\n", 400},
	{get + "X(: a\r\n\r\n", 400},
	{get + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
	{get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{get + "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
	{get + "Transfer-Encoding: identity\r\n\r\n", 501},
	{get + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
	{get + "Transfer-Encoding: xchunked\r\n\r\n", 501},
	{get + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
	{get + "Transfer-Encoding: \x0bchunked\r\n\r\n", 400},
	{get + "Transfer-Encoding:\r\n\r\n", 501},
	{"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{get + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
	{get + "Content-Length: 5, 5\r\n\r\n", 400},
	{get + "Content-Length: +5\r\n\r\n", 400},
	{get + "Content-Length: -5\r\n\r\n", 400},
	{get + "Content-Length: 0x5\r\n\r\n", 400},
	{get + "Content-Length:\r\n\r\n", 400},
	{get + "Content-Length: 5 5\r\n\r\n", 400},
	{get + "Content-Length: 9223372036854775808\r\n\r\n", 400},
	{get + "Transfer-Encoding: chunked\r\nTrailer: a, content-length\r\n\r\n", 400},
	{get + "X: " + strings.Repeat("a", maxTestHeader) + "\r\n\r\n", 431},
	{get + strings.Repeat("X: a\r\n", maxTestHeader/5) + "\r\n", 431},
	{"GET /" + strings.Repeat("a", maxTestHeader) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
	{"GET /" + strings.Repeat("a", 3*maxTestHeader), 414},
}

func TestRefusedRequests(t *testing.T) {
	for _, c := range refused {
		for _, cut := range []bool{false, true} {
			_, _, err := parse(c.raw, cut)
			var r *Refused
			if !errors.As(err, &r) || r.Status != c.status {
				t.Errorf("%.80q, cut %v: %v, want %d", c.raw, cut, err, c.status)
			}
		}
	}
}

// accepted are requests that are served.
var accepted = []string{
	get + "\r\n",
	"GET / HTTP/1.0\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\nX: b\n\n",
	"CONNECT a:443 HTTP/1.1\r\n\r\n",
	get + "X:a\r\nx: \t b \t\r\nX:\r\n\r\n",
	get + "X: \xff\xfe a\tb\r\n\r\n",
	get + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	get + "Content-Length: 0\r\n\r\n",
	get + "Transfer-Encoding: CHUNKED\r\nTrailer: A, b\r\nTrailer: c\r\n\r\n",
	get + "Connection: Content-Length\r\nContent-Length: 5\r\n\r\n",
	"GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"GET / HTTP/1.3\r\nHost: a\r\nConnection: close\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	get + "Pragma: no-cache\r\n\r\n",
}

func TestAcceptedRequests(t *testing.T) {
	for _, raw := range accepted {
		if _, _, err := parse(raw, true); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
		compareRequest(t, raw)
	}
}

// FuzzIncoming compares Incoming with http.ReadRequest. What both serve means the same, and what http.ReadRequest refuses
// is refused. The other way round Incoming refuses more: see stricter.
func FuzzIncoming(f *testing.F) {
	for _, raw := range accepted {
		f.Add(raw)
	}
	for _, c := range refused {
		if len(c.raw) < 1000 {
			f.Add(c.raw)
		}
	}
	f.Fuzz(compareRequest)
}

func compareRequest(t *testing.T, raw string) {
	in, framing, err := parse(raw, false)
	again, framingAgain, errAgain := parse(raw, true)
	if !reflect.DeepEqual(err, errAgain) || err == nil && (!reflect.DeepEqual(in.Fields, again.Fields) || !reflect.DeepEqual(framing, framingAgain)) {
		t.Fatalf("%q: %v %v %v, in pieces %v %v %v", raw, in.Fields, framing, err, again.Fields, framingAgain, errAgain)
	}
	want, wantErr := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	switch {
	case err != nil && wantErr == nil && !stricter(raw, err, want):
		t.Fatalf("%q: %v, net/http accepts it", raw, err)
	case err != nil:
		return
	case wantErr != nil && strings.Contains(wantErr.Error(), "parse "):
		return // the URL is the server's matter
	case wantErr != nil:
		t.Fatalf("%q: net/http %v", raw, wantErr)
	}
	fields := in.Fields.Clone()
	fields.Del("Host") // as http.Server does
	want.Header.Del("Host")
	if fields.Get("Pragma") == "no-cache" {
		want.Header["Cache-Control"] = fields["Cache-Control"] // of fixPragmaCacheControl; nothing is invented here
		fields["Cache-Control"] = want.Header["Cache-Control"]
	}
	length := framing.Length
	if framing.Chunked {
		length = -1
	}
	got := []any{in.Method, in.Target, in.Proto, in.Major, in.Minor, fields, length, framing.Trailer, framing.Close}
	wanted := []any{want.Method, want.RequestURI, want.Proto, want.ProtoMajor, want.ProtoMinor, want.Header, want.ContentLength, want.Trailer, want.Close}
	if !reflect.DeepEqual(got, wanted) {
		t.Fatalf("%q:\n%q\n%q by net/http", raw, got, wanted)
	}
}

// stricter reports whether a request that http.ReadRequest accepts is refused for a reason that is wanted.
func stricter(raw string, err error, r *http.Request) bool {
	var refused *Refused
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Reason {
	case "both Transfer-Encoding and Content-Length", "Transfer-Encoding in HTTP/1.0":
		return true // RFC 9112 sections 6.1 and 6.3
	case "malformed header field":
		for name := range r.Header {
			if !httpguts.ValidHeaderFieldName(name) {
				return true // http.Server checks them
			}
		}
		return strings.Contains(raw, "\n ") || strings.Contains(raw, "\n\t") // obs-fold, RFC 9112 section 5.2
	case "unsupported protocol version", "malformed Host header", "missing required Host header":
		return true // http.Server checks them
	case "the header is too large", "the request line is too long":
		return len(raw) > maxTestHeader // so does http.Server
	case "malformed request target": // a blank ends the target in http.ReadRequest, other bytes are of no URL
		return false
	}
	return false
}
