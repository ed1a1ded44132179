package proxy_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The record has every attempt with its time, bytes and failure, and the log shows the
// targets.
func TestRecordOfAttempts(t *testing.T) { onPaths(t, testRecordOfAttempts) }
func testRecordOfAttempts(t *testing.T, via path) {
	leaktest.Check(t)
	first, second := breaking(t, "503"), wiretest.Replying(t, ok)
	p := newProxy(t, via, proxy.Options{Retry: proxy.Retry{Statuses: []int{503}},
		Upstream: groupAt(t, upstream.Options{Name: "app", Balance: upstream.First()}, first, second)})
	records := make(chan *culvert.Result, 1)
	addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, record := filters.WithResult(r.Context())
		p.ServeHTTP(w, r.WithContext(ctx))
		records <- record
	}))
	client := wiretest.Dial(t, addr)
	client.Send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
	client.Status(200)
	record := wiretest.Await(t, records, "record")
	if record.Upstream != "app" || record.Err != nil || len(record.Attempts) != 2 {
		t.Fatalf("record %+v", record)
	}
	a, b := record.Attempts[0], record.Attempts[1]
	if a.Target != first || a.Status != 503 || a.Err == nil || a.Received != 0 {
		t.Errorf("first try %+v", a)
	}
	if b.Target != second || b.Status != 200 || b.Err != nil || b.Received != 2 || b.TimeToHeader <= 0 || b.Total < b.TimeToHeader {
		t.Errorf("second try %+v", b)
	}
	if counted := via == ownExchange; (a.WireReceived > 0) != counted || (b.WireReceived == int64(len(ok))) != counted || (b.WireSent > 5) != counted {
		t.Errorf("bytes of the connections: %d and %d received, %d sent", a.WireReceived, b.WireReceived, b.WireSent)
	}
}

// An attempt is recorded when its header has been received: ModifyResponse and the hooks of
// filters around the proxy see its target, status and time. At the end the same entry has the
// rest.
func TestRecordAtTheHeader(t *testing.T) { onPaths(t, testRecordAtTheHeader) }
func testRecordAtTheHeader(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		request, response string
		status            int
	}{
		"response": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ok, 200},
		"tunnel":   {upgrade, switching, 101},
		"refusal":  {upgrade, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := wiretest.Unused(t), wiretest.Replying(t, test.response)
			seen := make(chan culvert.Attempt, 3)
			note := func(r *http.Request) {
				tries := filters.ResultFrom(r.Context()).Attempts
				if len(tries) == 2 && tries[0].Target == first && tries[0].Err != nil && tries[0].TimeToHeader == 0 && tries[0].TimeToConnect == 0 {
					seen <- tries[1]
					return
				}
				t.Errorf("tries %+v", tries)
			}
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, first, second),
				ModifyResponse: func(a *proxy.Response) { note(a.In) }})
			hooks := filters.OnResponse(filters.ResponseHooks{Header: func(r *http.Request, _ int, _ http.Header) { note(r) }})
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, record := filters.WithResult(r.Context())
				hooks(p).ServeHTTP(w, r.WithContext(ctx))
				if len(record.Attempts) == 2 {
					seen <- record.Attempts[1]
				}
				close(seen)
			})))
			client.Send(test.request)
			client.Status(test.status)
			client.End()
			client.Rest()
			var last culvert.Attempt
			n := 0
			for try := range seen {
				if try.Target != second || try.Status != test.status || try.TimeToConnect <= 0 || try.TimeToHeader < try.TimeToConnect || n > 0 && try.TimeToHeader != last.TimeToHeader {
					t.Errorf("after %+v: %+v", last, try)
				}
				last, n = try, n+1
			}
			if n < 2 || last.Total < last.TimeToHeader {
				t.Errorf("%d records, the last %+v", n, last)
			}
		})
	}
}

func TestRecordedBytes(t *testing.T) { onPaths(t, testRecordedBytes) }
func testRecordedBytes(t *testing.T, via path) {
	leaktest.Check(t)
	target, _ := readingTarget(t)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
	records := make(chan *culvert.Result, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, record := filters.WithResult(r.Context())
		p.ServeHTTP(w, r.WithContext(ctx))
		records <- record
	})))
	client.Send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
	client.Status(200)
	if try := wiretest.Await(t, records, "record").Attempts[0]; try.Sent != 5 || try.Received != 2 {
		t.Errorf("sent %d, received %d", try.Sent, try.Received)
	}
}
