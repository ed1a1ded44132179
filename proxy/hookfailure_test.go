package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// What a hook fails with is the gateway's failure, or the client's: no target is to blame, none is tried again, and the client
// has a whole response.
func TestHooksFail(t *testing.T) { onPaths(t, testHooksFail) }

func testHooksFail(t *testing.T, via path) {
	leaktest.Check(t)
	var requests atomic.Int32
	target := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("page", 1000))
	})
	no := errors.New("no")
	for _, test := range []struct {
		err    error
		status int
		kind   culvert.ErrorKind
		retry  string
	}{
		{no, 500, culvert.Internal, ""},
		{&culvert.Error{Kind: culvert.Forbidden, Err: no}, 403, culvert.Forbidden, ""},
		{fmt.Errorf("wrapped: %w", &culvert.Error{Kind: culvert.Busy, RetryAfter: 3 * time.Second, Err: no}), 503, culvert.Busy, "3"},
		{&culvert.Error{Kind: culvert.NoTarget, Err: no}, 503, culvert.NoTarget, "1"},
		{&culvert.Error{Kind: culvert.HeaderInvalid, Err: no}, 500, culvert.Internal, ""}, // it would blame the target
		{&culvert.Error{Kind: culvert.ClientGone, Err: no}, 500, culvert.Internal, ""},    // it would send nothing
	} {
		for _, hook := range []string{"Rewrite", "ModifyResponse"} {
			for _, body := range []string{"", "Content-Length: 3\r\n\r\nabc"} {
				var failed *culvert.Error
				group := groupOf(t, upstream.Options{}, upstream.Target{Addr: target}, upstream.Target{Addr: "localhost" + target[strings.LastIndexByte(target, ':'):]})
				o := proxy.Options{Upstream: group, Retry: proxy.Retry{Errors: true, NonIdempotent: true, Statuses: []int{500, 503}},
					OnError: func(_ *http.Request, err *culvert.Error) { failed = err }}
				if hook == "Rewrite" {
					o.Rewrite = func(out *proxy.Outbound) { out.Fail(no); out.Fail(test.err) }
				} else {
					o.ModifyResponse = func(r *proxy.Response) { r.ServeInstead(http.NotFoundHandler()); r.Fail(test.err) }
				}
				p := newProxy(t, via, o)
				var record culvert.Result
				before := requests.Load()
				client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, result := filters.WithNewResult(r.Context())
					defer func() { record = *result }()
					p.ServeHTTP(w, r.WithContext(ctx))
				})))
				request := "POST / HTTP/1.1\r\nHost: a\r\n" + body
				if body == "" {
					request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
				}
				client.Send(request)
				resp, content := client.Response("GET")
				name := fmt.Sprintf("%s with %v, %q", hook, test.err, body)
				if resp.StatusCode != test.status || content != http.StatusText(test.status)+"\n" || resp.Header.Get("Retry-After") != test.retry {
					t.Errorf("%s: %d, Retry-After %q, %q", name, resp.StatusCode, resp.Header.Get("Retry-After"), content)
				}
				client.End()
				client.Rest()
				if err := p.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				if failed == nil || failed.Kind != test.kind || !errors.Is(failed, no) || failed.Target != "" || failed.HeaderSent || record.Err != failed {
					t.Errorf("%s: %#v, recorded %v", name, failed, record.Err)
				}
				want := 0
				if hook == "ModifyResponse" {
					want = 1
				}
				if n := int(requests.Load() - before); n != want || len(record.Attempts) != want {
					t.Errorf("%s: %d requests, attempts %+v", name, n, record.Attempts)
				}
				for s := range group.Targets() {
					if s.Fails != 0 || !s.Healthy || s.InFlight != 0 {
						t.Errorf("%s: %+v", name, s)
					}
				}
			}
		}
	}
}

// nil undoes what a hook has failed with.
func TestHooksFailNot(t *testing.T) { onPaths(t, testHooksFailNot) }

func testHooksFailNot(t *testing.T, via path) {
	leaktest.Check(t)
	target := targetOver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target),
		Rewrite:        func(o *proxy.Outbound) { o.Fail(io.EOF); o.Fail(nil) },
		ModifyResponse: func(r *proxy.Response) { r.Fail(io.EOF); r.Fail(nil) }})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, content := client.Response("GET"); resp.StatusCode != 200 || content != "page" {
		t.Errorf("%d %q", resp.StatusCode, content)
	}
	client.End()
	client.Rest()
}

// Each 503 of a group says when to try again.
func TestRetryAfterWithoutATarget(t *testing.T) { onPaths(t, testRetryAfterWithoutATarget) }

func testRetryAfterWithoutATarget(t *testing.T, via path) {
	leaktest.Check(t)
	p := newProxy(t, via, proxy.Options{Upstream: groupOf(t, upstream.Options{RetryAfter: 7 * time.Second}, upstream.Target{Addr: "192.0.2.1:1", Down: true})})
	addr := wiretest.Serve(t, p)
	for _, want := range []string{"7", "1"} {
		client := wiretest.Dial(t, addr)
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if resp, _ := client.Response("GET"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != want {
			t.Errorf("%s, Retry-After %q, want %s", resp.Status, resp.Header.Get("Retry-After"), want)
		}
		client.End()
		client.Rest()
		if err := p.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
