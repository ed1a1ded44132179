package proxy_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target resets a gRPC call whose deadline, which the client has chosen, has passed: that is no failure of the target, by which a
// client could take it out, is not retried, and has the status of a deadline.
func TestDeadlinesOfCalls(t *testing.T) { onPaths(t, testDeadlinesOfCalls) }
func testDeadlinesOfCalls(t *testing.T, via path) {
	reset := func(code http2.ErrCode) func(f *http2.Framer, stream uint32) error {
		return func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) }
	}
	behindHeader := func(f *http2.Framer, stream uint32) error {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndHeaders: true}); err != nil {
			return err
		}
		return f.WriteRSTStream(stream, http2.ErrCodeCancel)
	}
	for name, test := range map[string]struct {
		contentType, timeout string
		end                  func(f *http2.Framer, stream uint32) error
		status               string // the grpc-status; "" where another one does not matter
		overdue              bool
	}{
		"passed":             {"application/grpc", "1n", reset(http2.ErrCodeCancel), "4", true},
		"passed, a codec":    {"application/grpc+proto", "0H", reset(http2.ErrCodeCancel), "4", true},
		"passed in a stream": {"application/grpc", "1n", behindHeader, "", true},
		"not passed":         {"application/grpc", "99999999H", reset(http2.ErrCodeCancel), "14", false},
		"another code":       {"application/grpc", "1n", reset(http2.ErrCodeInternal), "14", false},
		"none":               {"application/grpc", "", reset(http2.ErrCodeCancel), "14", false},
		"malformed":          {"application/grpc", "1", reset(http2.ErrCodeCancel), "14", false},
		"no call":            {"application/json", "1n", reset(http2.ErrCodeCancel), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			group := groupAt(t, upstream.Options{Protocol: upstream.H2C, Balance: upstream.First()}, http2Script(t, test.end), http2Script(t, test.end))
			p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Errors: true, Timeouts: true, NonIdempotent: true, Tries: 2}})
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/s/m", strings.NewReader("\x00\x00\x00\x00\x00"))
			r.Header.Set("Content-Type", test.contentType)
			if test.timeout != "" {
				r.Header.Set("Grpc-Timeout", test.timeout)
			}
			ctx, record := filters.WithResult(r.Context())
			w := httptest.NewRecorder()
			func() {
				defer func() { _ = recover() }() // the response that has begun is aborted
				p.ServeHTTP(w, r.WithContext(ctx))
			}()
			if got := w.Header().Get("Grpc-Status"); got != test.status {
				t.Errorf("grpc-status %q, want %q: %v", got, test.status, record.Err)
			}
			attempts, fails := 2, 1
			if test.overdue {
				attempts, fails = 1, 0
			}
			if len(record.Attempts) != attempts {
				t.Errorf("%d attempts, want %d", len(record.Attempts), attempts)
			}
			if first := slices.Collect(group.Targets())[0]; first.Fails != fails {
				t.Errorf("%d failures count, want %d: %v", first.Fails, fails, record.Err)
			}
		})
	}
}
