package proxy_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// endings receives the calls of filters.Observe at the end of each request.
type endings chan *culvert.Result

func (endings) RequestStarted(*http.Request)                          {}
func (e endings) RequestEnded(_ *http.Request, o filters.Observation) { e <- o.Result }

// bug is a body transform that panics.
type bug struct{}

func (bug) Write([]byte) (int, error) { panic("a bug") }
func (bug) Close() error              { return nil }

// The attempt in which a hook panics has an end in the record, and a failure.
func TestRecordOfAPanic(t *testing.T) { onPaths(t, testRecordOfAPanic) }
func testRecordOfAPanic(t *testing.T, via path) {
	const get, page = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	panics := func(*http.Request, int, http.Header) { panic("a bug") }
	for name, test := range map[string]struct {
		request, response string
		hooks             filters.ResponseHooks
		o                 proxy.Options
		status            int
	}{
		"ModifyResponse": {get, page, filters.ResponseHooks{}, proxy.Options{ModifyResponse: func(*proxy.Response) { panic("a bug") }}, 200},
		"header":         {get, page, filters.ResponseHooks{Header: panics}, proxy.Options{}, 200},
		"body": {get, page, filters.ResponseHooks{Body: func(*http.Request, int, http.Header, io.Writer) io.WriteCloser { return bug{} }},
			proxy.Options{}, 200},
		"upgrade":           {handshake, switching, filters.ResponseHooks{Header: panics}, proxy.Options{}, 101},
		"upgrade, detached": {handshake, switching, filters.ResponseHooks{Header: panics}, proxy.Options{DetachTunnels: true}, 101},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			o := test.o
			o.Upstream = groupAt(t, upstream.Options{Name: "app"}, wiretest.Replying(t, test.response))
			seen := make(endings, 1)
			chain := filters.NewChain(filters.Recover(slog.New(slog.DiscardHandler)), filters.Observe(seen), filters.OnResponse(test.hooks))
			client := wiretest.Dial(t, wiretest.Serve(t, chain.Then(newProxy(t, via, o))))
			client.Send(test.request)
			record := wiretest.Await(t, seen, "record")
			if len(record.Attempts) != 1 {
				t.Fatalf("record %+v", record)
			}
			attempt := record.Attempts[0]
			var e *culvert.Error
			if attempt.Status != test.status || attempt.Total <= 0 || !errors.As(attempt.Err, &e) || e.Kind != culvert.Internal || record.Err != attempt.Err {
				t.Errorf("attempt %+v of %+v", attempt, record)
			}
		})
	}
}
