package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A response of known length that comes before its request has ended reaches the client at once: neither the client's
// body nor the upload to the target is waited for.
func TestEarlyResponseAtOnce(t *testing.T) {
	var most time.Duration
	if onStandardPath {
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
						if _, err := c.Read(make([]byte, 4<<10)); err == nil { // the header, and no more
							_, _ = io.WriteString(c, response)
							time.Sleep(time.Minute)
						}
					})}, "192.0.2.1:80")
					p := newProxy(t, proxy.Options{Upstream: group})
					var protocols http.Protocols
					protocols.SetHTTP1(!test.http2)
					protocols.SetUnencryptedHTTP2(test.http2)
					near, far := net.Pipe()
					s := &http.Server{Handler: p, Protocols: &protocols}
					go func() { _ = s.Serve(&oneConn{conn: far, closed: make(chan struct{})}) }()
					client := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
					body, send := io.Pipe()
					defer func() {
						send.Close()
						client.CloseIdleConnections()
						near.Close()
						_ = s.Close()
						_ = p.Drain(context.Background())
						_ = group.Close()
						time.Sleep(time.Hour) // the target ends
					}()
					go func() {
						_, _ = io.WriteString(send, test.body)
						if test.ends {
							send.Close()
						}
					}()
					r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gateway.test/", body)
					if err != nil {
						t.Fatal(err)
					}
					r.ContentLength = test.length
					start := time.Now()
					resp, err := client.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					if got, err := io.ReadAll(resp.Body); string(got) != "no" || err != nil {
						t.Errorf("body %q, error %v", got, err)
					}
					if took := time.Since(start); took > most {
						t.Errorf("after %v", took)
					}
				})
			})
		}
	}
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
