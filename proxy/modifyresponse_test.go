package proxy_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// withStatus is a ModifyResponse that changes the status of responses to requests for "/".
func withStatus(status int) func(*proxy.Response) {
	return func(a *proxy.Response) {
		if a.In.URL.Path == "/" {
			a.Status = status
		}
	}
}

// TestModifiedStatus: a status that ModifyResponse changes is sent with the framing that it needs, in the place of the target's, and
// the next request of the connection gets its own response. A status that no response can have fails the request.
func TestModifiedStatus(t *testing.T) { onPaths(t, testModifiedStatus) }
func testModifiedStatus(t *testing.T, via path) {
	leaktest.Check(t)
	for _, test := range []struct {
		name        string
		method      string
		received    int
		chunked     bool
		status      int
		want        int
		body        string
		length      string
		withTrailer bool
	}{
		{"content, another", "GET", 404, false, 200, 200, "content", "7", false},
		{"chunks, another", "GET", 404, true, 503, 503, "content", "", true},
		{"content, 204", "GET", 200, false, 204, 204, "", "", false},
		{"chunks, 204", "GET", 200, true, 204, 204, "", "", false},
		{"content, 304", "GET", 200, false, 304, 304, "", "", false},
		{"content, 205", "GET", 200, false, 205, 205, "", "0", false},
		{"204, content", "GET", 204, false, 200, 200, "", "0", false},
		{"304, content", "GET", 304, false, 200, 200, "", "0", false},
		{"HEAD", "HEAD", 200, false, 404, 404, "", "7", false},
		{"HEAD, 204", "HEAD", 200, false, 204, 204, "", "", false},
		{"100", "GET", 200, false, 100, 500, "Internal Server Error\n", "", false},
		{"101", "GET", 200, false, 101, 500, "Internal Server Error\n", "", false},
		{"103", "GET", 200, true, 103, 500, "Internal Server Error\n", "", false},
		{"0", "GET", 200, false, 0, 500, "Internal Server Error\n", "", false},
		{"1000", "GET", 200, false, 1000, 500, "Internal Server Error\n", "", false},
	} {
		for name, protocol := range map[string]upstream.Protocol{"HTTP/1.1": upstream.HTTP1, "HTTP/2": upstream.H2C} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				target := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/" {
						_, _ = w.Write([]byte("next"))
						return
					}
					w.Header().Set("X-Of-Target", "x")
					if test.chunked {
						w.Header().Set("Trailer", "X-Sum")
					} else if test.received != 204 {
						w.Header().Set("Content-Length", "7")
					}
					w.WriteHeader(test.received)
					if test.received != 204 && test.received != 304 {
						_, _ = w.Write([]byte("content"))
					}
					w.Header().Set("X-Sum", "1")
				})
				var failed failures
				group := groupAt(t, upstream.Options{Protocol: protocol, Balance: upstream.Sticky(upstream.StickyOptions{})}, target)
				results := make(chan *culvert.Result, 2)
				p := newProxy(t, via, proxy.Options{Upstream: group, ModifyResponse: withStatus(test.status), OnError: failed.add})
				client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, result := filters.WithResult(r.Context())
					p.ServeHTTP(w, r.WithContext(ctx))
					results <- result
				})))
				client.Send(test.method + " / HTTP/1.1\r\nHost: a\r\n\r\n")
				resp, body := client.Response(test.method)
				if resp.StatusCode != test.want || strings.TrimSpace(body) != strings.TrimSpace(test.body) {
					t.Errorf("the client got %d %q, want %d %q", resp.StatusCode, body, test.want, test.body)
				}
				if got := resp.Header.Get("Content-Length"); test.want != 500 && got != test.length {
					t.Errorf("Content-Length %q, want %q", got, test.length)
				}
				if got := resp.Trailer.Get("X-Sum") == "1"; got != test.withTrailer {
					t.Errorf("trailers %v", resp.Trailer)
				}
				if got := test.want != 500; got != (resp.Header.Get("X-Of-Target") == "x") || got != (resp.Header["Set-Cookie"] != nil) {
					t.Errorf("fields %v", resp.Header)
				}
				result := <-results
				if a := result.Attempts; len(a) != 1 || test.want != 500 && a[0].Status != test.received {
					t.Errorf("attempts %+v, want one with %d", a, test.received)
				}
				if e := errs.As(result.Err); (e != nil) != (test.want == 500) || e != nil && (e.Kind != culvert.Internal || e.HeaderSent) {
					t.Errorf("failure %v", result.Err)
				}
				client.Send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
				if resp, body := client.Response("GET"); resp.StatusCode != 200 || body != "next" {
					t.Errorf("the next request got %d %q", resp.StatusCode, body)
				}
				<-results
				for s := range group.Targets() {
					if s.Fails != 0 || s.InFlight != 0 {
						t.Errorf("the target is %+v", s)
					}
				}
			})
		}
	}
}

// TestModifiedHeader: the header that ModifyResponse leaves is the one that is sent, also if it is another map, or none.
func TestModifiedHeader(t *testing.T) { onPaths(t, testModifiedHeader) }

func testModifiedHeader(t *testing.T, via path) {
	leaktest.Check(t)
	target, _ := recording(t, "HTTP/1.1 200 OK\r\nX-A: target\r\nContent-Length: 2\r\n\r\nok")
	for name, header := range map[string]http.Header{"another": {"X-A": {"modified"}}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), ModifyResponse: func(a *proxy.Response) { a.Header = header }})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			resp, body := client.Response("GET")
			if resp.StatusCode != 200 || body != "ok" || resp.Header.Get("X-A") != header.Get("X-A") {
				t.Errorf("the client got %d %q %v", resp.StatusCode, body, resp.Header)
			}
		})
	}
}

// targetOver serves h over HTTP/1.1 and h2c.
func targetOver(t *testing.T, h http.HandlerFunc) (addr string) {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	wiretest.Start(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestModifiedUpgrade: ModifyResponse is called for a 101, and for what a target sends instead. It can't break the handshake, and
// with another status, or a handler, there is no tunnel, and the target is given back.
func TestModifiedUpgrade(t *testing.T) { onPaths(t, testModifiedUpgrade) }
func testModifiedUpgrade(t *testing.T, via path) {
	leaktest.Check(t)
	const refused = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
	for _, test := range []struct {
		name, reply string
		modify      func(*proxy.Response)
		want        int
		body        string
		tunnel      bool
	}{
		{"a field", switching, func(a *proxy.Response) { a.Header.Set("X-Modified", fmt.Sprint(a.Status)) }, 101, "", true},
		{"the handshake", switching, func(a *proxy.Response) {
			clear(a.Header)
			a.Header.Set("Sec-WebSocket-Extensions", "permessage-deflate")
			a.Header.Set("Sec-WebSocket-Protocol", "chat")
			a.Header.Set("Upgrade", "other")
			a.Header.Set("Content-Length", "5")
			a.Header.Set("X-Modified", fmt.Sprint(a.Status))
		}, 101, "", true},
		{"another map", switching, func(a *proxy.Response) { a.Header = http.Header{"X-Modified": {fmt.Sprint(a.Status)}} }, 101, "", true},
		{"403", switching, func(a *proxy.Response) { a.Header.Set("X-Modified", fmt.Sprint(a.Status)); a.Status = 403 }, 403, "", false},
		{"204", switching, func(a *proxy.Response) { a.Header.Set("X-Modified", fmt.Sprint(a.Status)); a.Status = 204 }, 204, "", false},
		{"a page", switching, func(a *proxy.Response) {
			modified := fmt.Sprint(a.Status)
			a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Modified", modified)
				http.Error(w, "not now", http.StatusServiceUnavailable)
			}))
		}, 503, "not now\n", false},
		{"103", switching, func(a *proxy.Response) { a.Status = 103 }, 500, "Internal Server Error\n", false},
		{"fails", switching, func(a *proxy.Response) { a.Fail(errors.New("no")) }, 500, "Internal Server Error\n", false},
		{"a refusal, fails", refused, func(a *proxy.Response) { a.Fail(errors.New("no")) }, 500, "Internal Server Error\n", false},
		{"a refusal", refused, func(a *proxy.Response) { a.Header.Set("X-Modified", fmt.Sprint(a.Status)) }, 404, "no", false},
		{"a refusal, 410", refused, func(a *proxy.Response) { a.Header.Set("X-Modified", fmt.Sprint(a.Status)); a.Status = 410 }, 410, "no", false},
		{"a refusal, 101", refused, func(a *proxy.Response) { a.Status = 101 }, 500, "Internal Server Error\n", false},
	} {
		for _, detach := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, detached %v", test.name, detach), func(t *testing.T) {
				targetEnded := make(chan struct{})
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					defer close(targetEnded)
					p.Header()
					p.Send(test.reply)
					if test.tunnel {
						p.Receive("up")
						p.Send("down")
					}
					p.Rest()
				})
				registry, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
				if err != nil {
					t.Fatal(err)
				}
				upgrades, err := wsupgrade.New(wsupgrade.Options{Registry: registry})
				if err != nil {
					t.Fatal(err)
				}
				group := groupAt(t, upstream.Options{}, target)
				p := newProxy(t, via, proxy.Options{Upstream: group, Upgrades: upgrades, DetachTunnels: detach, ModifyResponse: test.modify})
				client := wiretest.Dial(t, wiretest.Serve(t, p))
				client.Send(upgrade)
				if test.tunnel {
					head := wiretest.Lines(client.Header())
					want := "HTTP/1.1 101 Switching Protocols\nconnection: Upgrade\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\nupgrade: websocket\nx-modified: 101"
					if head != want {
						t.Errorf("the client got\n%s\nwant\n%s", head, want)
					}
					client.Send("up")
					client.Receive("down")
					client.End()
					client.Rest()
				} else {
					resp, body := client.Response("GET")
					if resp.StatusCode != test.want || strings.TrimSpace(body) != strings.TrimSpace(test.body) {
						t.Errorf("the client got %d %q, want %d %q", resp.StatusCode, body, test.want, test.body)
					}
					for _, name := range []string{"Upgrade", "Connection", "Sec-Websocket-Accept"} {
						if resp.Header[name] != nil {
							t.Errorf("%s: %q", name, resp.Header[name])
						}
					}
					if received := strings.Fields(test.reply)[1]; test.want != 500 && resp.Header.Get("X-Modified") != received {
						t.Errorf("ModifyResponse saw the status %q, want %s", resp.Header.Get("X-Modified"), received)
					}
				}
				wiretest.Await(t, targetEnded, "end of the target's connection")
				if err := p.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				if err := group.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				if err := registry.Drain(t.Context(), wsupgrade.GoingAway); err != nil {
					t.Error(err)
				}
				if n := group.InFlight(); n != 0 {
					t.Errorf("%d in flight", n)
				}
			})
		}
	}
}
