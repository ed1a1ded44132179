package wsupgrade_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// The key and its Sec-WebSocket-Accept are those of RFC 6455 section 1.3.
const (
	key    = "dGhlIHNhbXBsZSBub25jZQ=="
	accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

const handshake = "GET /chat HTTP/1.1\r\n" +
	"Host: culvert.test\r\n" +
	"Connection: Upgrade\r\n" +
	"Upgrade: websocket\r\n" +
	"Sec-WebSocket-Key: " + key + "\r\n" +
	"Sec-WebSocket-Version: 13\r\n" +
	"\r\n"

const switching = "HTTP/1.1 101 Switching Protocols\r\n" +
	"Connection: Upgrade\r\n" +
	"Upgrade: websocket\r\n" +
	"Sec-WebSocket-Accept: " + accept + "\r\n" +
	"\r\n"

// with returns header with lines inserted before its blank line.
func with(header string, lines ...string) string {
	if len(lines) == 0 {
		return header
	}
	return strings.TrimSuffix(header, "\r\n") + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// without returns header without the lines of the named field.
func without(header, field string) string {
	var kept []string
	for _, line := range strings.SplitAfter(header, "\r\n") {
		if !strings.HasPrefix(strings.ToLower(line), strings.ToLower(field)+":") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func forwarder(t testing.TB, o wsupgrade.Options) *wsupgrade.Forwarder {
	t.Helper()
	o.Portable = o.Portable || portable
	f, err := wsupgrade.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// gateway serves a ServeMux with upgrades to target at /, and /secret beside.
func gateway(t testing.TB, o wsupgrade.Options, target string) (addr string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", forwarder(t, o).Handler(&url.URL{Scheme: "http", Host: target}))
	mux.HandleFunc("/secret", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "kept by the gateway")
	})
	return wiretest.Serve(t, mux)
}

// outcome is what one call of Forward did.
type outcome struct {
	status int
	err    *culvert.Error
}

// watched serves Forward and reports each call's outcome.
func watched(t testing.TB, o wsupgrade.Options, target string) (addr string, outcomes <-chan outcome) {
	t.Helper()
	f := forwarder(t, o)
	c := make(chan outcome, 8)
	return wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := f.Forward(w, r, outboundTo(r, target))
		c <- outcome{status, asError(err)}
		switch e := asError(err); {
		case e == nil:
		case e.HeaderSent:
			panic(http.ErrAbortHandler)
		default:
			wsupgrade.Refuse(w, e)
		}
	})), c
}

func outboundTo(r *http.Request, target string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "http", target
	return out
}

// startOrForward opens a tunnel to target with Start if it is detached, otherwise with Forward, and closes ended when the
// tunnel has ended.
func startOrForward(f *wsupgrade.Forwarder, detached bool, w http.ResponseWriter, r *http.Request, target string, ended chan<- struct{}) {
	if detached {
		_, _ = f.Start(w, r, outboundTo(r, target), func(*wsupgrade.Tunnel) { close(ended) })
		return
	}
	defer close(ended)
	_, _ = f.Forward(w, r, outboundTo(r, target))
}

func asError(err error) *culvert.Error {
	var e *culvert.Error
	_ = errors.As(err, &e)
	return e
}
