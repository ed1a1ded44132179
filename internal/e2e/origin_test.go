package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// origin is a server of raw bytes that records what a proxy sent. The last part of a
// request's path selects the response.
type origin struct {
	address string
	mu      sync.Mutex
	seen    []upstreamRequest
}

// upstreamRequest is one request as it was received.
type upstreamRequest struct {
	Line   string
	Names  []string `json:",omitempty"` // of the fields, as they were received
	Fields map[string][]string
	Body   string
}

func startOrigin(t *testing.T) *origin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOrigin(t, l)
}

// serveOrigin serves all connections that l accepts.
func serveOrigin(t *testing.T, l net.Listener) *origin {
	u := &origin{address: l.Addr().String()}
	var conns sync.Map
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Store(conn, nil)
			serving.Go(func() { u.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Range(func(conn, _ any) bool { return conn.(net.Conn).Close() == nil || true })
		serving.Wait()
	})
	return u
}

// take returns what was seen since the last call.
func (u *origin) take() []upstreamRequest {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

func (u *origin) serve(conn net.Conn) {
	defer conn.Close()
	facts := handshaken(conn)
	r := bufio.NewReader(conn)
	for {
		request, err := readRequest(r)
		if request.Line == "" {
			return
		}
		for name, values := range facts {
			request.Fields[name] = values
		}
		u.mu.Lock()
		u.seen = append(u.seen, request)
		u.mu.Unlock()
		if err != nil || !respond(conn, r, request) {
			return
		}
	}
}

// readRequest reads a request without checking it.
func readRequest(r *bufio.Reader) (upstreamRequest, error) {
	_, names := peekHeader(r)
	line, err := r.ReadString('\n')
	if err != nil {
		return upstreamRequest{}, err
	}
	request := upstreamRequest{Names: names, Line: strings.TrimSuffix(line, "\r\n")}
	fields, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil {
		return request, err
	}
	request.Fields = fields
	var body []byte
	switch {
	case len(fields["Transfer-Encoding"]) > 0:
		body, err = io.ReadAll(httputil.NewChunkedReader(r))
		if err == nil {
			var trailer textproto.MIMEHeader
			trailer, err = textproto.NewReader(r).ReadMIMEHeader()
			for name, values := range trailer {
				request.Fields["trailer:"+name] = values
			}
		}
	case fields.Get("Content-Length") != "":
		n, _ := strconv.Atoi(fields.Get("Content-Length"))
		body = make([]byte, n)
		_, err = io.ReadFull(r, body)
	}
	request.Body = string(body)
	return request, err
}

// respond sends the response that the path selects, and reports whether the connection is kept.
func respond(conn net.Conn, r *bufio.Reader, request upstreamRequest) bool {
	path := strings.Fields(request.Line + " /")[1]
	path, _, _ = strings.Cut(path, "?")
	kind := path[strings.LastIndexByte(path, '/')+1:]
	send := func(raw string) { _, _ = io.WriteString(conn, raw) }
	switch kind {
	case "410", "404", "500", "403", "502", "503", "429":
		body := "<!doctype html><h1>" + kind + "</h1>"
		send(fmt.Sprintf("HTTP/1.1 %s X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n", kind, len(body)))
		if !strings.HasPrefix(request.Line, "HEAD") {
			send(body)
		}
	case "401":
		send("HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"of the upstream\"\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nwho?")
	case "accel":
		send("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /internal/page.html\r\nContent-Type: text/special\r\nContent-Disposition: attachment\r\nSet-Cookie: a=1\r\nX-Own: 1\r\nContent-Length: 7\r\n\r\ndropped")
	case "accel-return":
		send("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /returned\r\nContent-Type: text/special\r\nContent-Length: 0\r\n\r\n")
	case "accel-named":
		send("HTTP/1.1 404 Not Found\r\nX-Accel-Redirect: @named\r\nContent-Length: 0\r\n\r\n")
	case "accel-escaped":
		send("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /internal/p%61ge.html?x=1\r\nContent-Length: 0\r\n\r\n")
	case "accel-outside":
		send("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /internal/%2e%2e/page.html\r\nContent-Length: 0\r\n\r\n")
	case "attributes":
		send("HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Domain=app.internal; Path=/app/x; Secure\r\nSet-Cookie: b=2; path=/other; HttpOnly; SameSite=None\r\nSet-Cookie: c=3\r\nSet-Cookie: b = 5 ;path=/app/y;Secure ; x = y\r\nSet-Cookie: d=4; domain=.app.internal\r\nContent-Length: 2\r\n\r\nok")
	case "html":
		body := "<html><head><title>One</title></HEAD><body>one two one</body></html>"
		send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"x\"\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Length: %d\r\n\r\n", len(body)))
		if !strings.HasPrefix(request.Line, "HEAD") {
			send(body)
		}
	case "gzipped":
		send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(gzipped), gzipped))
	case "limited":
		send("HTTP/1.1 200 OK\r\nX-Accel-Limit-Rate: 100000\r\nContent-Length: 2\r\n\r\nok")
	case "big":
		send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("0123456789", 20000))
	case "410-fresh":
		send("HTTP/1.1 410 Gone\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\ngone")
	case "204":
		send("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n")
	case "304":
		send("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")
	case "304-typed":
		send("HTTP/1.1 304 Not Modified\r\nContent-Type: text/x\r\n\r\n")
	case "varying":
		send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: b\r\nVary: Accept-Encoding\r\nContent-Length: 5\r\n\r\nhello")
	case "redirect":
		send("HTTP/1.1 302 Found\r\nLocation: http://" + first(request.Fields["Host"]) + "/moved\r\nContent-Length: 0\r\n\r\n")
	case "elsewhere":
		send("HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/moved\r\nContent-Length: 0\r\n\r\n")
	case "cookies":
		send("HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok")
	case "hop":
		send("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")
	case "chunked":
		send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n")
	case "trailer":
		send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n")
	case "eof":
		send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
		return false
	case "early-hints":
		send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	case "half":
		send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		return false
	case "garbage":
		send("this is not HTTP at all\r\n\r\n")
		return false
	case "status099":
		send("HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok")
		return false
	case "bighead":
		send("HTTP/1.1 200 OK\r\nX-Big: " + strings.Repeat("x", 128<<10) + "\r\nContent-Length: 2\r\n\r\nok")
		return false
	case "reset":
		_ = conn.(*net.TCPConn).SetLinger(0)
		return false
	case "close":
		return false
	case "ws":
		return webSocket(conn, r, request)
	case "tcp":
		if first(request.Fields["Upgrade"]) == "tcp" {
			send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(conn, r)
			return false
		}
		send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
	default:
		body := "you requested " + path
		send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", len(body)))
		if !strings.HasPrefix(request.Line, "HEAD") {
			send(body)
		}
	}
	return true
}

// webSocket echoes all bytes after a proper upgrade, and responds with 404 to all other
// requests, as Tomcat does. Its Accept is for the key of RFC 6455's example.
func webSocket(conn net.Conn, r *bufio.Reader, request upstreamRequest) bool {
	if !strings.EqualFold(first(request.Fields["Upgrade"]), "websocket") ||
		!strings.EqualFold(first(request.Fields["Connection"]), "upgrade") {
		_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope")
		return true
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
	_, _ = io.Copy(conn, r)
	return false
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// handshaken returns the server name that the client has sent in a TLS handshake, and the subject of
// its certificate.
func handshaken(conn net.Conn) map[string][]string {
	secure, ok := conn.(*tls.Conn)
	if !ok || secure.Handshake() != nil {
		return nil
	}
	state := secure.ConnectionState()
	facts := map[string][]string{"tls:name": {state.ServerName}}
	for _, c := range state.PeerCertificates {
		facts["tls:client"] = append(facts["tls:client"], c.Subject.CommonName)
	}
	return facts
}

// gzipped is a compressed page.
var gzipped = func() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, "compressed by the upstream")
	_ = z.Close()
	return b.String()
}()
