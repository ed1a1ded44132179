package e2e

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// response is one response as a client saw it.
type response struct {
	None    string `json:",omitempty"` // why there is none
	Interim []int
	Status  int
	Line    string   // the status line
	Names   []string `json:",omitempty"` // of the fields, as they were received
	Fields  map[string][]string
	Body    string
	Broken  bool // the body ended before its end
	Close   bool // the connection is not kept
	Trailer map[string][]string
}

// dial connects from the address local, "" for any.
func dial(t *testing.T, address, local string) net.Conn {
	t.Helper()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	if local != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(local)}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// dialUnix connects to a unix socket of a folder, from one of its own if local names it. It
// waits for a server that has begun to listen elsewhere only.
func dialUnix(t *testing.T, dir, name, local string) net.Conn {
	t.Helper()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	if local != "" {
		dialer.LocalAddr = &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, local)}
	}
	var conn net.Conn
	waitFor(t, "the unix socket "+name, func() bool {
		var err error
		conn, err = dialer.Dial("unix", filepath.Join(dir, name))
		return err == nil
	})
	return conn
}

// handshake speaks TLS over conn and returns the name in the certificate.
func handshake(t *testing.T, conn net.Conn, serverName, cert string) (net.Conn, string) {
	t.Helper()
	config := &tls.Config{ServerName: serverName, InsecureSkipVerify: true}
	if cert != "" {
		config.Certificates = []tls.Certificate{authority.pair(cert)}
	}
	secure := tls.Client(conn, config)
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return secure, secure.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// exchange is converse over a connection of its own from the address local, "" for
// any.
func exchange(t *testing.T, address, local, raw string, methods ...string) []response {
	t.Helper()
	conn := dial(t, address, local)
	defer conn.Close()
	return converse(t, conn, raw, false, methods...)
}

// converse sends raw bytes over conn, behind which it closes conn for writing if end is set, and reads the responses to the
// methods, in order. It ends early if the connection does.
func converse(t *testing.T, conn net.Conn, raw string, end bool, methods ...string) []response {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	go func() {
		_, _ = io.WriteString(conn, raw)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && end {
			_ = half.CloseWrite()
		}
	}()
	r := bufio.NewReader(conn)
	var responses []response
	for _, method := range methods {
		got, err := readResponse(r, method)
		if err != nil {
			return append(responses, response{None: noResponse(err), Close: true})
		}
		responses = append(responses, got)
		if got.Close {
			break
		}
	}
	return responses
}

// noResponse describes why there is no response, in words that are the same on every run.
func noResponse(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "closed"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	return "not HTTP"
}

func readResponse(r *bufio.Reader, method string) (response, error) {
	var interim []int
	for {
		line, names := peekHeader(r)
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return response{}, err
		}
		if resp.StatusCode < 200 && resp.StatusCode != 101 {
			interim = append(interim, resp.StatusCode)
			continue
		}
		got := response{Interim: interim, Status: resp.StatusCode, Line: line, Names: names, Fields: resp.Header, Close: resp.Close}
		if resp.StatusCode == 101 {
			// What follows is the tunnel's: the test frame comes back.
			frame := make([]byte, len(webSocketFrame))
			_, err = io.ReadFull(r, frame)
			got.Body, got.Close = string(frame), true
			return got, err
		}
		body, err := io.ReadAll(resp.Body)
		got.Body, got.Broken = string(body), err != nil
		if len(resp.TransferEncoding) > 0 {
			got.Fields["Transfer-Encoding"] = resp.TransferEncoding
		}
		if len(resp.Trailer) > 0 {
			got.Trailer = resp.Trailer
		}
		return got, nil
	}
}

// peekHeader returns the first line of a header section, and the names of its fields; nothing if it is longer than r's buffer.
func peekHeader(r *bufio.Reader) (line string, names []string) {
	for n := 1; ; n++ {
		b, err := r.Peek(max(n, r.Buffered()))
		header, _, whole := strings.Cut(string(b), "\r\n\r\n")
		if whole {
			lines := strings.Split(header, "\r\n")
			for _, field := range lines[1:] {
				name, _, _ := strings.Cut(field, ":")
				names = append(names, name)
			}
			return lines[0], names
		}
		if err != nil {
			return "", nil
		}
		n = len(b)
	}
}

// webSocketFrame is a masked text frame, sent in one segment with the handshake
// by a client that can't wait.
const webSocketFrame = "\x81\x85\x00\x00\x00\x00hello"

// webSocketRequest is the handshake of RFC 6455's example, the frame behind it.
func webSocketRequest(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: gateway.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + webSocketFrame
}

// get is a request without a body; lines are further fields.
func get(target string, lines ...string) string { return request("GET", target, "", lines...) }

func request(method, target, body string, lines ...string) string {
	head := method + " " + target + " HTTP/1.1\r\nHost: gateway.example\r\n"
	for _, line := range lines {
		head += line + "\r\n"
	}
	return head + "\r\n" + body
}
