package proxy_test

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// zerosWithoutEnd serves downloads at /download, sends nothing at /silent, and else reads all.
func zerosWithoutEnd() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	})
}

// visitor is a client that is slow until done is closed.
type visitor func(t *testing.T, client *http.Client, url string, done <-chan struct{})

// A time that ran out while the client was waited for is not the target's fault: a few slow clients do not take it out.
func TestTimeThatRanOutForTheClient(t *testing.T) { onPaths(t, testTimeThatRanOutForTheClient) }
func testTimeThatRanOutForTheClient(t *testing.T, via path) {
	const enough = 60 * soon
	testCertificate()
	timeout, err := filters.Timeout(enough)
	if err != nil {
		t.Fatal(err)
	}
	whole := proxy.Options{Timeout: enough}
	around := []culvert.Filter{timeout}
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
		around []culvert.Filter
		do     visitor
		kind   culvert.ErrorKind
	}{
		{"a stalled upload", whole, nil, stalled("/"), culvert.BodyTooSlow},
		{"a stalled upload, of a filter", proxy.Options{}, around, stalled("/"), culvert.BodyTooSlow},
		{"a stalled upload, held", proxy.Options{Timeout: enough, RequestBuffer: &proxy.Buffer{}}, nil, stalled("/"), culvert.BodyTooSlow},
		{"an unread download", whole, nil, download("/download", time.Hour), culvert.ClientGone},
		{"unread events", whole, nil, download("/events", time.Hour), culvert.ClientGone},
		{"a slow reader", whole, nil, download("/download", 5*time.Millisecond), culvert.ClientGone},
		{"a slow reader of events", whole, nil, download("/events", 5*time.Millisecond), culvert.ClientGone},
	} {
		for _, front := range fronts {
			t.Run(test.name+", "+front, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
					l := newPipes()
					target := wiretest.Server(&http.Server{Handler: zerosWithoutEnd(), ErrorLog: wiretest.Quiet()})
					go func() { _ = target.Serve(l) }()
					t.Cleanup(func() { _ = target.Close() })
					var failed failures
					o := test.o
					o.OnError = failed.add
					group := groupOf(t, upstream.Options{DialContext: l.dial}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 1, FailTimeout: time.Hour})
					o.Upstream = group
					client, url := frontInBubble(t, front, filters.NewChain(test.around...).Then(newProxy(t, via, o)))
					done := make(chan struct{})
					var visit sync.WaitGroup
					visit.Go(func() { test.do(t, client, url, done) })
					failed.await(t)
					close(done)
					visit.Wait()
					if e := failed.only(t); e.Kind != test.kind || e.TargetSide() {
						t.Errorf("failure %#v", e)
					}
					if resp, err := client.Get(url); err != nil || resp.Body.Close() != nil {
						t.Errorf("and then %v, error %v", resp, err)
					}
					if n := failsOf(group); n != 0 {
						t.Errorf("%d failures of the target", n)
					}
				})
			})
		}
	}
}

// The end of an exchange's time does not cut a response that has arrived whole: net/http may send it later, when the
// outermost handler has returned.
func TestResponseBehindTheEndOfTheTime(t *testing.T) { onPaths(t, testResponseBehindTheEndOfTheTime) }
func testResponseBehindTheEndOfTheTime(t *testing.T, via path) {
	const enough = 10 * time.Second
	testCertificate()
	for _, front := range fronts {
		t.Run(front, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
				group := groupAt(t, upstream.Options{DialContext: pipeTo(func(c net.Conn) {
					target := wiretest.NewPeer(t, c)
					target.Header()
					target.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole")
				})}, "192.0.2.1:80")
				p := newProxy(t, via, proxy.Options{Timeout: enough, Upstream: group})
				client, url := frontInBubble(t, front, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					p.ServeHTTP(w, r)
					time.Sleep(2 * enough) // a slow log
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
		})
	}
}

// failsOf returns the failures that count against the first target.
func failsOf(g *upstream.Group) int {
	for s := range g.Targets() {
		return s.Fails
	}
	return -1
}

// A target that responds, or has no time left, since it waited for the client has not been slow. One that is waited for
// has, though its client has more to send.
func TestBlameForTheClientsTime(t *testing.T) { onPaths(t, testBlameForTheClientsTime) }
func testBlameForTheClientsTime(t *testing.T, via path) {
	const (
		limit  = 300 * time.Millisecond
		header = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		expect = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
		piece  = "5\r\nhello\r\n"
		end    = "0\r\n\r\n"
	)
	tooSlow := func(p *wiretest.Peer) {
		p.Receive(piece)
		quietFor(p, 3*limit/2)
		p.Send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}
	whole := func(p *wiretest.Peer) {
		p.Receive(piece + end)
		p.Ended()
	}
	buffered := proxy.Options{Timeout: 2 * limit, RequestBuffer: &proxy.Buffer{}}
	late := func(p *wiretest.Peer) {
		p.Send(header + piece)
		time.Sleep(3 * limit / 2) // the client is slow
		p.Send(end)
	}
	for name, test := range map[string]struct {
		o      proxy.Options
		u      upstream.Options
		client func(*wiretest.Peer)
		target func(*wiretest.Peer)
		fails  int
	}{
		"stalled client, FailLatency": {proxy.Options{}, upstream.Options{FailLatency: limit},
			func(p *wiretest.Peer) { p.Send(header + piece) }, tooSlow, 0},
		"slow target, FailLatency": {proxy.Options{}, upstream.Options{FailLatency: limit},
			func(p *wiretest.Peer) { p.Send(header + piece + end) },
			func(p *wiretest.Peer) { p.Receive(piece + end); quietFor(p, 3*limit/2); p.Send(ok) }, 1},
		"late client, Timeout": {proxy.Options{Timeout: 2 * limit}, upstream.Options{}, late, whole, 0},
		"late client, Timeout, held": {buffered, upstream.Options{}, late,
			func(p *wiretest.Peer) { p.Ended() }, 0},
		"slow target, Timeout": {proxy.Options{Timeout: 2 * limit}, upstream.Options{},
			func(p *wiretest.Peer) { p.Send(header + piece + end) }, whole, 1},
		"unwanted body, Timeout": {proxy.Options{Timeout: limit}, upstream.Options{},
			func(p *wiretest.Peer) { p.Send(expect) },
			func(p *wiretest.Peer) { p.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"); p.Ended() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, group := inBubble(t, via, test.o, test.u, func(p *wiretest.Peer) {
					p.Header()
					test.target(p)
				})
				go test.client(client)
				client.Header()
				go client.Ended()
				time.Sleep(time.Second)
				if n := failsOf(group); n != test.fails {
					t.Errorf("%d failures of the target, want %d", n, test.fails)
				}
			})
		})
	}
}

// A target whose response comes to a halt is to blame for that, also where the client has more to send.
func TestHaltedResponseBesideABody(t *testing.T) { onPaths(t, testHaltedResponseBesideABody) }
func testHaltedResponseBesideABody(t *testing.T, via path) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 100 Continue\r\n\r\n")
		p.Receive("he")
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		p.Ended()
	})
	var failed failures
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), BodyTimeout: soon, OnError: failed.add})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send(expecting + "he")
	client.Header()
	failed.await(t)
	if e := failed.only(t); e.Kind != culvert.Timeout || e.Target != target || !e.HeaderSent {
		t.Errorf("failure %#v", e)
	}
}
