package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// failingTransform is a body transform that fails by itself, in its first Write or at its end.
type failingTransform struct {
	io.Writer
	atEnd bool
}

var errTemplate = errors.New("a template is broken")

func (f failingTransform) Write(p []byte) (int, error) {
	if f.atEnd {
		return f.Writer.Write(p)
	}
	return 0, errTemplate
}

func (f failingTransform) Close() error {
	if f.atEnd {
		return errTemplate
	}
	return nil
}

// The failure of a body transform is the gateway's: the response is broken off, OnError, unless it comes at the end, and the
// access log have it, and no target is to blame.
func TestTransformFails(t *testing.T) { onPaths(t, testTransformFails) }

func testTransformFails(t *testing.T, via path) {
	leaktest.Check(t)
	for _, atEnd := range []bool{false, true} {
		target := targetOver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("page", 10_000)) })
		group := groupAt(t, upstream.Options{}, target)
		var failed *culvert.Error
		p := newProxy(t, via, proxy.Options{Upstream: group, OnError: func(_ *http.Request, err *culvert.Error) { failed = err }})
		var log bytes.Buffer
		handler := filters.NewChain(
			filters.AccessLog(slog.New(slog.NewTextHandler(&log, nil))),
			filters.OnResponse(filters.ResponseHooks{Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
				h.Del("Content-Length")
				return failingTransform{w, atEnd}
			}}),
		).Then(p)
		ended := make(chan struct{})
		client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			handler.ServeHTTP(w, r)
		})))
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if got := string(client.Rest()); strings.HasSuffix(got, "0\r\n\r\n") {
			t.Errorf("at the end %v: the response looks whole", atEnd)
		}
		wiretest.Await(t, ended, "end of the handler")
		if !atEnd && (failed == nil || failed.Kind != culvert.Internal || !errors.Is(failed, errTemplate)) {
			t.Errorf("OnError is called with %#v", failed)
		}
		if !strings.Contains(log.String(), errTemplate.Error()) {
			t.Errorf("at the end %v: the log has %s", atEnd, log.String())
		}
		for s := range group.Targets() {
			if s.Fails != 0 || s.InFlight != 0 {
				t.Errorf("%+v", s)
			}
		}
	}
}
