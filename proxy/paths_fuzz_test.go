package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// twoPaths is a proxy on each path, in front of a target that sends the bytes of a script.
type twoPaths struct {
	target *scripted
	paths  map[path]*onePath
	run    int           // each request through one of them is one
	wait   time.Duration // for what the target has read
}

// differ runs a comparison, and once more with time for a busy machine if it finds a difference.
func (two *twoPaths) differ(compare func() (difference string)) string {
	two.wait = 20 * time.Millisecond
	if compare() == "" {
		return ""
	}
	two.wait = time.Second
	return compare()
}

type onePath struct {
	proxy   *proxy.Proxy
	failure *culvert.Error
	forget  func() // the connections that were kept: the target closes each
}

// scripted responds to each request with the reply, closes the connection, and keeps what it read.
type scripted struct {
	mu    sync.Mutex
	reply []byte
	read  chan readRequest
}

// readRequest is one as the target has read it. It may come when the next run has begun already.
type readRequest struct{ run, text string }

// runField holds the number of the run that a request belongs to.
const runField = "X-Run"

func newTwoPaths(f *testing.F) *twoPaths {
	f.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	two := &twoPaths{target: &scripted{read: make(chan readRequest, 10)}, paths: map[path]*onePath{}}
	go two.target.serve(l)
	for _, via := range []path{ownExchange, httpTransport} {
		u := groupAt(f, upstream.Options{HeaderTimeout: 2 * time.Second}, l.Addr().String())
		one := &onePath{forget: u.Transport().(*upstream.Transport).CloseIdleConnections}
		o := proxy.Options{Upstream: u, BodyTimeout: 2 * time.Second, Rewrite: two.setRun, OnError: func(_ *http.Request, e *culvert.Error) { one.failure = e }}
		one.proxy = newProxy(f, via, o)
		two.paths[via] = one
	}
	return two
}

func (s *scripted) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			r := bufio.NewReader(conn)
			req, err := http.ReadRequest(r)
			if err != nil {
				s.read <- readRequest{text: "no request"}
				return
			}
			body, _ := io.ReadAll(req.Body)
			run := req.Header.Get(runField)
			req.Header.Del(runField)
			s.read <- readRequest{run, described(req, body)}
			s.mu.Lock()
			reply := s.reply
			s.mu.Unlock()
			_, _ = conn.Write(reply)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, r)
		}()
	}
}

// described is a request without the order of its fields.
func described(r *http.Request, body []byte) string {
	return fmt.Sprintf("%s %s %s %v %v %q %v", r.Method, r.RequestURI, r.Host, r.ContentLength, r.TransferEncoding, body, fieldsOf(r.Header)) + fieldsOf(r.Trailer)
}

func fieldsOf(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s=%q ", name, h[name])
	}
	return b.String()
}

// setRun is a proxy's Rewrite.
func (two *twoPaths) setRun(o *proxy.Outbound) { o.Out.Header.Set(runField, strconv.Itoa(two.run)) }

// sent is what the target has read in this run, "" for nothing.
func (two *twoPaths) sent() string {
	timeout := time.After(two.wait)
	for {
		select {
		case r := <-two.target.read:
			if r.run == "" || r.run == strconv.Itoa(two.run) {
				return r.text
			}
		case <-timeout:
			return ""
		}
	}
}

// send sends a request through one path and returns its outcome.
func (two *twoPaths) send(via path, request, reply []byte) (sent, got string) {
	one := two.paths[via]
	two.run++
	one.failure = nil
	one.forget()
	two.target.mu.Lock()
	two.target.reply = reply
	two.target.mu.Unlock()
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		return "", ""
	}
	r.RemoteAddr = "192.0.2.1:1"
	w := httptest.NewRecorder()
	aborted := false
	func() {
		defer func() { aborted = recover() != nil }()
		one.proxy.ServeHTTP(w, r)
	}()
	sent = two.sent()
	kind := "none"
	if one.failure != nil {
		kind = fmt.Sprint(one.failure.Kind)
	}
	result := w.Result()
	body, _ := io.ReadAll(result.Body)
	return sent, fmt.Sprintf("%d aborted=%v failure=%s %q %s %s", result.StatusCode, aborted, kind, body, fieldsOf(named(result.Header)), fieldsOf(result.Trailer))
}

// named takes out what is wanted to differ: net/http makes Cache-Control of Pragma
// (fixPragmaCacheControl), the proxy invents nothing.
func named(h http.Header) http.Header {
	if h.Get("Pragma") == "no-cache" {
		delete(h, "Cache-Control")
	}
	slices.Sort(h["Trailer"]) // they come out of a map
	for _, values := range h {
		for i := range values {
			values[i] = textproto.TrimString(values[i]) // as net/http's server sends them
		}
	}
	return h
}

// blankInName is a field's name, or a trailer's, with a blank in it: net/http hands it on as it is.
// The proxy takes a blank before the colon away, so that the field means what it says (RFC 9112
// section 5.1), and refuses others.
var blankInName = regexp.MustCompile(`\n[^:\n]*[ \t][^:\n]*:`)

// otherVersion is the beginning of a response whose version is not 1.x: net/http accepts it, the
// proxy does not.
var otherVersion = regexp.MustCompile(`(?m)^HTTP/(?:[^1]|1[^.])`)

// bareTrailers are lines of a body in chunks that end with a line feed alone: the proxy takes none
// among trailers, net/http takes some.
var bareTrailers = regexp.MustCompile(`(?is)chunked.*[^\r]\n`)

// FuzzResponsePaths: both paths relay any response of a target in the same way.
func FuzzResponsePaths(f *testing.F) {
	for _, reply := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nTrailer: A, B\r\n\r\n5;x\r\nhello\r\n0\r\nA: 1\r\nC: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 304 Not Modified\r\nEtag: x\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 1000 X\r\n\r\n", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\n\nbare", "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\x00\r\n\r\n", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 0\r\n\r\n", "", "garbage",
		"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 200 OK\r\nConnection: X-A\r\nX-A: 1\r\nKeep-Alive: 5\r\nContent-Length: 2\r\n\r\nokextra",
		"HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(reply), false)
		f.Add([]byte(reply), true)
	}
	two := newTwoPaths(f)
	f.Fuzz(func(t *testing.T, reply []byte, head bool) {
		if otherVersion.Match(reply) || blankInName.Match(reply) || bareTrailers.Match(reply) {
			return // see there
		}
		request := "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
		if head {
			request = "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n"
		}
		if difference := two.differ(func() string {
			_, own := two.send(ownExchange, []byte(request), reply)
			_, std := two.send(httpTransport, []byte(request), reply)
			if own != std {
				return fmt.Sprintf("own:      %s\nstandard: %s", own, std)
			}
			return ""
		}); difference != "" {
			t.Errorf("%q\n%s", reply, difference)
		}
	})
}

// FuzzRequestPaths: the target sees the same request on both paths, for any bytes that a client sends.
func FuzzRequestPaths(f *testing.F) {
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /x?y HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\n\r\nhello", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: B\r\n\r\n3\r\nabc\r\n0\r\nB: 1\r\n\r\n",
		"GET /a%2Fb//c;d?e=%zz&f HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nX-A: 1\r\nX-A: 2\r\nConnection: X-B\r\nX-B: 3\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET //x HTTP/1.1\r\nHost: a\r\n\r\n", "GET //\" HTTP/1.1\r\nHost: a\r\n\r\n",
		"DELETE /?? HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:8\r\nTE: trailers\r\n\r\n", "GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n", "BREW / HTTP/1.1\r\nHost: a\r\nX: \xff\r\nY:  z \r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nshort", "GET /%00%0a?\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	if wiretest.Full() || value("test.fuzz") != "" { // a body that is expected takes its second on each path
		f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok"))
	}
	two := newTwoPaths(f)
	reply := []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	f.Fuzz(func(t *testing.T, request []byte) {
		if bytes.Contains(bytes.ToLower(request), []byte("upgrade")) || bytes.Contains(bytes.ToLower(request), []byte("expect")) && len(request) > 200 {
			return // upgrades take a path of their own; Expect takes its second
		}
		if difference := two.differ(func() string {
			ownSent, own := two.send(ownExchange, request, reply)
			stdSent, std := two.send(httpTransport, request, reply)
			if own == std && ownSent == stdSent || shortBody(request) { // a small body that ends early is not sent at all
				return ""
			}
			if r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request))); err == nil && encodedAnew(r) && strings.HasPrefix(std, "400 ") {
				return ""
			}
			return fmt.Sprintf("own:      %s\n          %s\nstandard: %s\n          %s", ownSent, own, stdSent, std)
		}); difference != "" {
			t.Errorf("%q\n%s", request, difference)
		}
	})
}

// shortBody reports whether a request's body can't be read to its end.
func shortBody(request []byte) bool {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		return true
	}
	_, err = io.ReadAll(r.Body)
	return err != nil
}
