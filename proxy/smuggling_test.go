package proxy_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestSmuggling sends requests that two servers could take for different ones, to
// one culvert and to two in a row, with a second request behind each. What the
// target sees must be exactly the requests that were meant, and never the second
// one where the first was refused.
func TestSmuggling(t *testing.T) { onPathsParallel(t, testSmuggling) }
func testSmuggling(t *testing.T, via path) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	type attack struct {
		name, request string
		status        string // of the first response
		want          string // what the target saw: method, target, host and body of each request
		own           string // the status by which package server refuses it; "": it does as net/http's server
	}
	attacks := []attack{
		{"length", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"equal lengths", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"two lengths", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "400", "", ""},
		{"a list of lengths", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\nhi", "400", "", ""},
		{"a signed length", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nhi", "400", "", ""},
		{"a negative length", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\nhi", "400", "", ""},
		{"a hexadecimal length", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\nhi", "400", "", ""},
		{"an empty length", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nhi", "400", "", ""},
		{"a huge length", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nhi", "400", "", ""},
		{"chunked", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"length, then chunked", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /1 a hi, GET /smuggled a ", "400"},
		{"chunked, then length", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /1 a hi, GET /smuggled a ", "400"},
		{"chunked in capitals", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"chunked twice", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "501", "", ""},
		{"two codings", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "501", "", ""},
		{"two lines of coding", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "501", "", ""},
		{"an odd coding", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "501", "", ""},
		{"identity", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", "501", "", ""},
		{"a coding behind a tab", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"a coding behind a vertical tab", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \vchunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "400", "", ""},
		{"HTTP/1.0 chunked", "POST /1 HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200", "POST /1 a ", "400"},
		{"folding", "POST /1 HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi", "200", "POST /1 a hi, GET /smuggled a ", "400"},
		{"folding of the first line", "POST /1 HTTP/1.1\r\n Host: a\r\nContent-Length: 2\r\n\r\nhi", "400", "", ""},
		{"a bare CR", "POST /1 HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi", "400", "", ""},
		{"bare LF", "POST /1 HTTP/1.1\nHost: a\nContent-Length: 2\n\nhi", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"a blank before the colon", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\nhi", "400", "", ""},
		{"a tab before the colon", "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length\t: 2\r\n\r\nhi", "400", "", ""},
		{"a field without a name", "POST /1 HTTP/1.1\r\nHost: a\r\n: chunked\r\nContent-Length: 2\r\n\r\nhi", "400", "", ""},
		{"a field without a colon", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\r\nContent-Length: 2\r\n\r\nhi", "400", "", ""},
		{"NUL in a value", "POST /1 HTTP/1.1\r\nHost: a\r\nX: \x00\r\nContent-Length: 2\r\n\r\nhi", "400", "", ""},
		{"a chunk extension", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c=\"d\"\r\nhi\r\n0;e\r\n\r\n", "200", "POST /1 a hi, GET /smuggled a ", ""},
		{"LF in a chunk extension", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a\nhi\r\n0\r\n\r\n", "400", "", ""},
		{"a chunk size with a sign", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nhi\r\n0\r\n\r\n", "400", "", ""},
		{"a chunk size with 0x", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nhi\r\n0\r\n\r\n", "400", "", ""},
		{"an oversized chunk size", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\nhi\r\n0\r\n\r\n", "400", "", ""},
		{"more than the chunk's size", "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n", "400", "", ""},
		{"absolute form", "GET http://b/1 HTTP/1.1\r\nHost: a\r\n\r\n", "200", "GET /1 b , GET /smuggled a ", ""},
		{"absolute form with user", "GET http://a@b/1 HTTP/1.1\r\nHost: a\r\n\r\n", "200", "GET /1 b , GET /smuggled a ", ""},
		{"two Hosts", "GET /1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400", "", ""},
		{"no Host", "GET /1 HTTP/1.1\r\n\r\n", "400", "", ""},
		{"a bad Host", "GET /1 HTTP/1.1\r\nHost: a b\r\n\r\n", "400", "", ""},
		{"a body of GET", "GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", "200", "GET /1 a hi, GET /smuggled a ", ""},
		{"a blank in the target", "GET /1 /2 HTTP/1.1\r\nHost: a\r\n\r\n", "400", "", ""},
		{"an odd version", "GET /1 HTTP/1.10\r\nHost: a\r\n\r\n", "400", "", ""},
		{"HTTP/2 in the line", "GET /1 HTTP/2.0\r\nHost: a\r\n\r\n", "505", "", ""},
	}
	for depth, name := range []string{"one", "two in a row"} {
		atOnce(t, attacks, func(a attack) string { return a.name + ", " + name }, func(t *testing.T, a attack) {
			if wiretest.OwnServer() && a.own != "" {
				a.status, a.want = a.own, ""
			}
			target, requests := readingTarget(t)
			addr := gateway(t, via, target)
			if depth == 1 {
				addr = gateway(t, via, addr)
			}
			client := wiretest.Dial(t, addr)
			client.Send(a.request + smuggled)
			responses := client.Ended()
			status := strings.TrimPrefix(strings.TrimPrefix(responses, "HTTP/1.1 "), "HTTP/1.0 ")
			if !strings.HasPrefix(status, a.status) {
				t.Errorf("the response is %q, want %s", responses, a.status)
			}
			if got := seen(requests); got != a.want {
				t.Errorf("the target saw %q, want %q", got, a.want)
			}
		})
	}
}

// seen lists the complete requests that have reached the target.
func seen(requests <-chan received) string {
	var list []string
	for {
		select {
		case r := <-requests:
			if r.err == nil {
				list = append(list, r.Method+" "+r.RequestURI+" "+r.Host+" "+r.body)
			}
		default:
			return strings.Join(list, ", ")
		}
	}
}
