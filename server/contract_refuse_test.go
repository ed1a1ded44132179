package server_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// refusal is a request that a server refuses with a status, closing the connection, and without calling the handler.
type refusal struct {
	name, request string
	status        int    // 200 if net/http's server serves it
	own           int    // package server's status, if it is another one
	why           string // it is
}

const (
	both             = "both lengths: an attempt to smuggle a request, to be handled as an error (RFC 9112 section 6.3)"
	oldCoding        = "a coding that HTTP/1.0 does not have: the framing is faulty (RFC 9112 section 6.1)"
	folded           = "a server must refuse or replace a folded line (RFC 9112 section 5.2)"
	tooLongURI       = "a status of its own (RFC 9112 section 3)"
	otherExpectation = "it is not 100-continue (RFC 9110 section 10.1.1)"
	prefaceName      = "net/http's server hands HTTP/2's preface to the handler"
)

var refusals = []refusal{
	{"no line", "\x00\r\n\r\n", 400, 0, ""},
	{"one word", "GET\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"no version", "GET /\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"four words", "GET / x HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a blank before the method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a blank behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400, 0, ""},
	{"no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"an empty method", " / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a method that is no token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a relative target", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a broken escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"NUL in the target", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a control character in the target", "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"bare CR in the line", "GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"version in small letters", "GET / http/1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"version of letters", "GET / HTTP/1.x\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"version of one number", "GET / HTTP/1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"version of two digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"version with a sign", "GET / HTTP/+1.1\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"HTTP/0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505, 0, ""},
	{"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, 0, ""},
	{"HTTP/3.0", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, 0, ""},
	{"HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\n", 200, 505, prefaceName},

	{"no Host", "GET / HTTP/1.1\r\n\r\n", 400, 0, ""},
	{"no Host, absolute-form", "GET http://a/ HTTP/1.1\r\n\r\n", 400, 0, ""},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, 0, ""},
	{"one Host twice", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, 0, ""},
	{"a Host of two words", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, 0, ""},
	{"a Host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, 0, ""},
	{"a Host that is no host, in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", 400, 0, ""},

	{"a field without colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A\r\n\r\n", 400, 0, ""},
	{"an empty name", "GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n", 400, 0, ""},
	{"a blank before the colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A : 1\r\n\r\n", 400, 0, ""},
	{"a tab before the colon", "GET / HTTP/1.1\r\nHost: a\r\nX-A\t: 1\r\n\r\n", 400, 0, ""},
	{"a blank before the colon of a coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, 0, ""},
	{"a name that is no token", "GET / HTTP/1.1\r\nHost: a\r\nX(A: 1\r\n\r\n", 400, 0, ""},
	{"a name of bytes above 127", "GET / HTTP/1.1\r\nHost: a\r\nX-\xc3\xa4: 1\r\n\r\n", 400, 0, ""},
	{"NUL in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\x00: 1\r\n\r\n", 400, 0, ""},
	{"NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: \x00\r\n\r\n", 400, 0, ""},
	{"DEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: \x7f\r\n\r\n", 400, 0, ""},
	{"bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\rX-B: 2\r\n\r\n", 400, 0, ""},
	{"bare CR at the end of a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\r\n\r\n", 400, 0, ""},
	{"a field that begins with a blank", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, 0, ""},
	{"a folded field", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n 2\r\n\r\n", 200, 400, folded},
	{"a folded field, a tab", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\t2\r\n\r\n", 200, 400, folded},
	{"a folded length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 0\r\n\r\n", 200, 400, folded},
	{"a folded coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 200, 400, folded},

	{"a length and a coding", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, 400, both},
	{"a coding and a length", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 200, 400, both},
	{"a length of 0 and a coding", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, 400, both},
	{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", 400, 0, ""},
	{"two lengths of one number", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 02\r\n\r\nhi", 400, 0, ""},
	{"a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\nhi", 400, 0, ""},
	{"a length with a sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nhi", 400, 0, ""},
	{"a length below 0", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, 0, ""},
	{"a length in hexadecimal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\nhi", 400, 0, ""},
	{"a length with underscores", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1_0\r\n\r\n0123456789", 400, 0, ""},
	{"a length with a point", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2.0\r\n\r\nhi", 400, 0, ""},
	{"a length of two words", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2 0\r\n\r\nhi", 400, 0, ""},
	{"an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400, 0, ""},
	{"a length of 2^63", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n", 400, 0, ""},
	{"a length of 2^64+2", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551618\r\n\r\nhi", 400, 0, ""},

	{"an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, 0, ""},
	{"xchunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501, 0, ""},
	{"chunked, identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"gzip, chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"chunked, then another line", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"chunked in quotes", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"chunked with a parameter", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", 501, 0, ""},
	{"an empty coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 501, 0, ""},
	{"a vertical tab before chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400, 0, ""},
	{"a coding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, 400, oldCoding},
	{"a length as a trailer", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: content-length\r\n\r\n0\r\n\r\n", 400, 0, ""},
	{"a coding as a trailer", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x, Transfer-Encoding\r\n\r\n0\r\n\r\n", 400, 0, ""},

	{"another expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n", 417, 0, ""},
	{"an expectation of two words", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue x\r\nContent-Length: 0\r\n\r\n", 200, 417, otherExpectation},
	{"a header section that is too large", "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", 431, 0, ""},
	{"fields without number", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:\r\n", 4<<10) + "\r\n", 431, 0, ""},
	{"a header section without end", "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 16<<10), 431, 0, ""},
	{"a target that is too long", "GET /" + strings.Repeat("a", 16<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, 414, tooLongURI},
}

// What a server refuses. Its bound for a header section is 4 KiB here, to which net/http's server adds 4 KiB.
func TestContractRefusals(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		for _, row := range refusals {
			t.Run(row.name, func(t *testing.T) {
				var served atomic.Int32
				_, addr := k.listen(t, &http.Server{MaxHeaderBytes: 4 << 10, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/probe" {
						served.Add(1)
					}
					_, _ = io.Copy(io.Discard, r.Body)
				})})
				want := row.status
				if k == own && row.own != 0 {
					want = row.own
				}
				checkRefusal(t, addr, row.request, want, &served)
			})
		}
	})
}

// checkRefusal fails the test unless the server at addr responds to the request with the status, and, except for a 200,
// closes the connection, says so, and has served nothing.
func checkRefusal(t *testing.T, addr, request string, want int, served *atomic.Int32) {
	t.Helper()
	received, _ := exchange(t, addr, request)
	if len(received) == 0 || !strings.HasPrefix(received[0], "HTTP/1.1 "+strconv.Itoa(want)+" ") && want != http.StatusOK {
		t.Errorf("responses %.300q, want a %d", received, want)
		return
	}
	if want == http.StatusOK {
		if served.Load() == 0 {
			t.Errorf("not served: %q", received)
		}
		return
	}
	if len(received) > 1 || !strings.Contains(received[0], "|Connection: close|") && !strings.HasSuffix(received[0], "|Connection: close") {
		t.Errorf("responses %q, want one, with Connection: close", received)
	}
	if served.Load() > 0 {
		t.Errorf("served, and refused with %q", received)
	}
}

// A refusal comes when the fault has arrived: the rest of the request is not waited for.
func TestContractRefusalIsEarly(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		_, l := k.inBubble(t, &http.Server{})
		for _, request := range []string{
			"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
			"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n",
		} {
			c := l.dial(t)
			got := c.send(request) + c.after(time.Minute)
			if !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.1 5") || !c.closed() {
				t.Errorf("received %q, closed: %v", got, c.closed())
			}
		}
	})
}

// A client that ends before its request is whole receives nothing; the handler is not called.
func TestContractCutHeader(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n"
	onServersInBubble(t, func(t *testing.T, k kind) {
		_, l := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("served")
		})})
		for sent := range len(request) {
			c := l.dial(t)
			c.send(request[:sent])
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got := c.after(time.Minute)
			if strings.Contains(got, " 200 ") || !c.closed() {
				t.Errorf("%d bytes sent: received %q, closed: %v", sent, got, c.closed())
			}
		}
	})
}

// A request in the clear to a server of TLS receives a response in the clear.
func TestContractPlainRequestToTLS(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		_, addr := k.listen(t, &http.Server{TLSConfig: new(tls.Config)})
		for _, request := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n\r\n"} {
			p := wiretest.Dial(t, addr)
			p.Send(request)
			if got := p.Ended(); !strings.HasPrefix(got, "HTTP/1.0 400 Bad Request\r\n") || !strings.Contains(got, "HTTP request to an HTTPS server") {
				t.Errorf("received %q", got)
			}
		}
	})
}
