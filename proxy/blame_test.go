package proxy_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// zerosWithoutEnd is a target that serves downloads at /download, says nothing at /silent, and else reads all.
func zerosWithoutEnd(t *testing.T) string {
	return wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/download":
			w.Header().Set("Content-Length", "1099511627776")
			_, _ = io.Copy(w, zeros{})
		case "/events":
			_, _ = io.Copy(w, zeros{})
		case "/silent":
			<-r.Context().Done()
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}))
}

// visitor is a client that is slow until done is closed.
type visitor func(t *testing.T, client *http.Client, url string, done <-chan struct{})

// A time that ran out while the client was waited for is not the target's fault: a few slow clients do not take it out.
func TestTimeThatRanOutForTheClient(t *testing.T) {
	leaktest.Check(t)
	const enough = 20 * soon // for all that does not wait for the client
	timeout, err := filters.Timeout(enough)
	if err != nil {
		t.Fatal(err)
	}
	whole := proxy.Options{Timeout: enough}
	around := []filters.Filter{timeout}
	stalled := func(path string) visitor {
		return func(t *testing.T, client *http.Client, url string, _ <-chan struct{}) {
			content, send := io.Pipe()
			defer send.Close()
			go func() { _, _ = io.WriteString(send, "x") }()
			resp, err := client.Post(url+path, "text/plain", content)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != 408 {
				t.Errorf("response %s", resp.Status)
			}
		}
	}
	download := func(path string, pause time.Duration) visitor {
		return func(t *testing.T, client *http.Client, url string, done <-chan struct{}) {
			resp, err := client.Get(url + path)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			for {
				select {
				case <-done:
					return
				case <-time.After(pause):
					_, _ = io.CopyN(io.Discard, resp.Body, 4096)
				}
			}
		}
	}
	for _, test := range []struct {
		name   string
		o      proxy.Options
		around []filters.Filter
		do     visitor
		kind   proxy.Kind
	}{
		{"a stalled upload", whole, nil, stalled("/"), proxy.BodyTooSlow},
		{"a stalled upload, of a filter", proxy.Options{}, around, stalled("/"), proxy.BodyTooSlow},
		{"a stalled upload, held", proxy.Options{Timeout: enough, RequestBuffer: &proxy.Buffer{}}, nil, stalled("/"), proxy.BodyTooSlow},
		{"an unread download", whole, nil, download("/download", time.Hour), proxy.ClientGone},
		{"unread events", whole, nil, download("/events", time.Hour), proxy.ClientGone},
		{"a slow reader", whole, nil, download("/download", 5*time.Millisecond), proxy.ClientGone},
		{"a slow reader of events", whole, nil, download("/events", 5*time.Millisecond), proxy.ClientGone},
	} {
		for name, front := range clientFronts {
			t.Run(test.name+", "+name, func(t *testing.T) {
				t.Parallel()
				var failed failures
				o := test.o
				o.OnError = failed.add
				o.Upstream = groupOf(t, upstream.Options{}, upstream.Target{Addr: zerosWithoutEnd(t), MaxFails: 1, FailTimeout: time.Hour})
				client, url := front(t, filters.NewChain(test.around...).Then(newProxy(t, o)))
				done := make(chan struct{})
				var visit sync.WaitGroup
				visit.Go(func() { test.do(t, client, url, done) })
				failed.await(t)
				close(done)
				visit.Wait()
				if e := failed.only(t); e.Kind != test.kind || e.TargetSide() {
					t.Errorf("failure %#v", e)
				}
				if resp, err := client.Get(url); err != nil || resp.StatusCode == 503 || resp.Body.Close() != nil {
					t.Errorf("and then %v, error %v", resp, err)
				}
			})
		}
	}
}

// The end of an exchange's time does not cut a response that has come whole: net/http may send it later, when the
// outermost handler has returned.
func TestResponseBehindTheEndOfTheTime(t *testing.T) {
	leaktest.Check(t)
	const enough = 10 * soon
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "whole") }))
	p := newProxy(t, proxy.Options{Timeout: enough, Upstream: groupAt(t, upstream.Options{}, target)})
	for name, front := range clientFronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, url := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p.ServeHTTP(w, r)
				<-time.After(enough) // a slow log
			}))
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); string(body) != "whole" || err != nil {
				t.Errorf("%q, error %v", body, err)
			}
		})
	}
}
