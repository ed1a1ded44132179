package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// earlyResponse is the response of a transport that has received an interim response and reads the request's body, for which
// the client has received no 100, when the response's body has begun: net/http's does, to keep the connection.
type earlyResponse struct {
	request io.ReadCloser
	reads   int
	sent    chan error // how the body was sent
	closed  chan struct{}
}

func (b *earlyResponse) Read(p []byte) (int, error) {
	b.reads++
	switch b.reads {
	case 1:
		go func() {
			_, err := io.Copy(io.Discard, b.request)
			b.sent <- err
		}()
		return copy(p, "x"), nil
	case 2:
		select {
		case <-time.After(10 * time.Minute):
			return copy(p, "y"), nil
		case err := <-b.sent:
			return 0, err // net/http's transport closes a connection to which it can't send the whole request
		case <-b.closed:
			return 0, net.ErrClosed
		}
	}
	return 0, io.EOF
}

func (b *earlyResponse) Close() error {
	close(b.closed)
	return nil
}

// A client that expects a 100 and gets a final response sends no body. A transport that reads the body all the same does not
// wait for the client, and ReadTimeout does not cut a response that pauses.
func TestEarlyResponseBehindAnInterimOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			if err := httptrace.ContextClientTrace(r.Context()).Got1xxResponse(http.StatusEarlyHints, textproto.MIMEHeader{}); err != nil {
				return nil, err
			}
			body := &earlyResponse{request: r.Body, sent: make(chan error, 1), closed: make(chan struct{})}
			return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1, Body: body}, nil
		})
		var failed failures
		group := groupAt(t, upstream.Options{}, "192.0.2.1:80")
		defer group.Close()
		p := newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: transport, ReadTimeout: 10 * time.Second, OnError: failed.add})
		near, far := net.Pipe()
		s := wiretest.Server(&http.Server{Handler: p})
		go func() { _ = s.Serve(wiretest.OneConn(far)) }()
		if got := unasked(t, near); got != "xy" {
			t.Errorf("the client got %q", got)
		}
		near.Close()
		_ = s.Close()
		_ = p.Drain(context.Background())
		time.Sleep(time.Hour) // net/http's server lingers
		if len(failed.all) > 0 {
			t.Errorf("failures: %v", failed.all)
		}
	})
}

// unasked sends a request that expects a 100, and returns the body of the final response.
func unasked(t *testing.T, conn net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for _, want := range []int{http.StatusEarlyHints, http.StatusOK} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%v, %v, want %d", resp, err, want)
		}
		if want == http.StatusOK {
			return bodyOf(t, resp)
		}
	}
	return ""
}
