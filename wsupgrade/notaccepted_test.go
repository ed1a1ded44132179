package wsupgrade_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A client that accepts nothing of what the Forwarder itself sends, a refusal or the header of a
// 101, holds neither handler nor connection.
func TestResponseThatIsNotAccepted(t *testing.T) {
	const handshake = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	refused := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
	switching := func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			p := wiretest.NewPeer(t, far)
			_ = far.SetDeadline(time.Time{})
			p.Header()
			p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
			p.Ended()
		}()
		return near, nil
	}
	open := func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			_, _ = far.Read(make([]byte, 1))
		}()
		return near, nil
	}
	type makes = func(*wsupgrade.Forwarder) http.Handler
	handler := func(f *wsupgrade.Forwarder) http.Handler {
		return f.Handler(&url.URL{Scheme: "http", Host: "target"})
	}
	connect := func(f *wsupgrade.Forwarder) http.Handler {
		h, err := f.Connect(func(r *http.Request) (string, error) {
			if strings.HasPrefix(r.Host, "forbidden") {
				return "", errors.New("forbidden")
			}
			return r.Host, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, test := range map[string]struct {
		dial    func(context.Context, string, string) (net.Conn, error)
		handler makes
		request string
	}{
		"426":              {refused, handler, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"502":              {refused, handler, handshake},
		"101":              {switching, handler, handshake},
		"405 of Connect":   {refused, connect, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"403 of Connect":   {refused, connect, "CONNECT forbidden:1 HTTP/1.1\r\nHost: forbidden:1\r\n\r\n"},
		"a 200 to CONNECT": {open, connect, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"},
		"a 502 to CONNECT": {refused, connect, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				f, err := wsupgrade.New(wsupgrade.Options{Dial: test.dial})
				if err != nil {
					t.Fatal(err)
				}
				wiretest.NotAccepted(t, test.handler(f), test.request)
			})
		})
	}
}
