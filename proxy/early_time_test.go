package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A response of known length that comes before its request has ended reaches the client at once: neither the client's
// body nor the upload to the target is waited for.
func TestEarlyResponseAtOnce(t *testing.T) { onPaths(t, testEarlyResponseAtOnce) }
func testEarlyResponseAtOnce(t *testing.T, via path) {
	var most time.Duration
	if via == httpTransport {
		most = 50 * time.Millisecond // net/http's transport holds the last bytes back to see the upload end (maxWriteWaitBeforeConnReuse)
	}
	small, large := "hello", strings.Repeat("hello", 100<<10)
	for name, test := range map[string]struct {
		http2  bool
		body   string // that the client sends
		length int64
		ends   bool // the client has no more
	}{
		"of a length":              {false, small, 40000, false},
		"chunked":                  {false, small, -1, false},
		"chunked, whole":           {false, small, -1, true},
		"large":                    {false, large, -1, false},
		"large, whole":             {false, large, -1, true},
		"HTTP/2, of a length":      {true, small, 40000, false},
		"HTTP/2, without a length": {true, small, -1, false},
		"HTTP/2, whole":            {true, small, -1, true},
	} {
		for _, response := range []string{
			"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno",
			"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
		} {
			t.Run(name+", "+response[9:12], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: pipeTo(func(c net.Conn) {
						if readsHeader(c) { // and no more of what comes with it
							_, _ = io.WriteString(c, response)
							time.Sleep(time.Minute)
						}
					})}, "192.0.2.1:80")
					p := newProxy(t, via, proxy.Options{Upstream: group})
					var protocols http.Protocols
					protocols.SetHTTP1(!test.http2)
					protocols.SetUnencryptedHTTP2(test.http2)
					near, far := net.Pipe()
					s := wiretest.Server(&http.Server{Handler: p, Protocols: &protocols})
					go func() { _ = s.Serve(wiretest.OneConn(far)) }()
					defer func() {
						near.Close()
						_ = s.Close()
						_ = p.Drain(context.Background())
						_ = group.Close()
						time.Sleep(time.Hour) // the target ends
					}()
					start := time.Now()
					var got string
					if test.http2 {
						got = earlyOverHTTP2(t, near, test.body, test.length, test.ends)
					} else {
						got = earlyOverHTTP1(t, near, test.body, test.length, test.ends)
					}
					if took := time.Since(start); got != "no" || took > most {
						t.Errorf("body %q after %v", got, took)
					}
				})
			})
		}
	}
}

// readsHeader reads a request's header, byte by byte, since a pipe holds nothing, and reports whether it came.
func readsHeader(c net.Conn) bool {
	var header []byte
	for b := make([]byte, 1); !bytes.HasSuffix(header, []byte("\r\n\r\n")); header = append(header, b...) {
		if _, err := c.Read(b); err != nil {
			return false
		}
	}
	return true
}

// earlyOverHTTP1 sends a request and returns the body of its response. It does without net/http's client, which holds the
// last bytes of a response back to see its upload end.
func earlyOverHTTP1(t *testing.T, conn net.Conn, body string, length int64, ends bool) string {
	t.Helper()
	go func() {
		if length >= 0 {
			_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: %d\r\n\r\n%s", length, body)
			return
		}
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: gateway.test\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body)
		if ends {
			_, _ = io.WriteString(conn, "0\r\n\r\n")
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return bodyOf(t, resp)
}

func earlyOverHTTP2(t *testing.T, conn net.Conn, body string, length int64, ends bool) string {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	defer client.CloseIdleConnections()
	content, send := io.Pipe()
	defer send.Close()
	go func() {
		_, _ = io.WriteString(send, body)
		if ends {
			send.Close()
		}
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway.test/", content)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = length
	resp, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return bodyOf(t, resp)
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(got)
}

// pipeTo returns a DialContext that connects to serve in memory.
func pipeTo(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			serve(far)
		}()
		return near, nil
	}
}
