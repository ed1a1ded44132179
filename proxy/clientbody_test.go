package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"

	"github.com/klauspost/compress/gzip"
)

// clientFronts are the protocols that clients of a gateway speak.
var clientFronts = map[string]func(t *testing.T, h http.Handler) (*http.Client, string){
	"HTTP/1.1": func(t *testing.T, h http.Handler) (*http.Client, string) {
		return clientOf(t, func(s *httptest.Server) { wiretest.Start(s) }, h)
	},
	"HTTP/2": func(t *testing.T, h http.Handler) (*http.Client, string) {
		client, url := clientOf(t, func(s *httptest.Server) {
			s.EnableHTTP2 = true
			wiretest.StartTLS(s)
		}, h)
		connect(t, client.Transport, url)
		return client, url
	},
	"h2c": func(t *testing.T, h http.Handler) (*http.Client, string) {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		client, url := clientOf(t, func(s *httptest.Server) {
			s.Config.Protocols = &protocols
			wiretest.Start(s)
		}, h)
		client.Transport.(*http.Transport).Protocols = &protocols
		connect(t, client.Transport, url)
		return client, url
	},
}

// connect makes the connection of HTTP/2 that the next request to url uses, by a request to which net/http's server responds
// itself. That server gives a client 2 seconds for its first frame, which a machine that stops takes.
func connect(t *testing.T, transport http.RoundTripper, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = "*"
	for range 10 {
		resp, failure := transport.RoundTrip(r.Clone(t.Context()))
		if err = failure; err == nil {
			resp.Body.Close()
			return
		}
	}
	t.Fatal(err)
}

func clientOf(t *testing.T, start func(*httptest.Server), h http.Handler) (*http.Client, string) {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = wiretest.Quiet()
	start(s)
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)
	return s.Client(), s.URL
}

// watchedBody reports each of its reads, and knows whether one is under way.
type watchedBody struct {
	io.ReadCloser
	began  chan struct{} // receives for each read
	inside atomic.Int32
	over   atomic.Bool // the handler has returned
	late   atomic.Bool // a read began after that
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.inside.Add(1)
	defer b.inside.Add(-1)
	if b.over.Load() {
		b.late.Store(true)
	}
	b.began <- struct{}{}
	return b.ReadCloser.Read(p)
}

// A response that ends before its request stops the reading of the request's body, also if the client sends no more: a
// writer of net/http for HTTP/2 that is used by a goroutine after its handler returned ends the process.
func TestNothingReadsBehindTheHandler(t *testing.T) {
	onPathsParallel(t, testNothingReadsBehindTheHandler)
}
func testNothingReadsBehindTheHandler(t *testing.T, via path) {
	for name, front := range clientFronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bodies := make(chan *watchedBody, 8)
			target := earlyTarget(t, func() { // the second read waits for the client
				body := <-bodies
				bodies <- body
				<-body.began
				wiretest.Await(t, body.began, "second read")
			})
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
			returned := make(chan *watchedBody, 8)
			client, url := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := &watchedBody{ReadCloser: r.Body, began: make(chan struct{}, 100)}
				r.Body = body
				bodies <- body
				p.ServeHTTP(w, r)
				body.over.Store(true)
				if n := body.inside.Load(); n != 0 {
					t.Errorf("%d reads are under way behind the exchange", n)
				}
				<-bodies
				returned <- body
			}))
			for range 3 {
				content, send := io.Pipe()
				go func() { _, _ = io.WriteString(send, "x") }()
				resp, err := client.Post(url, "text/plain", content)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 401 || string(text) != "no" {
					t.Errorf("response %s %q, error %v", resp.Status, text, err)
				}
				body := wiretest.Await(t, returned, "end of the handler")
				_, _ = io.WriteString(send, "y")
				send.Close()
				if body.late.Load() {
					t.Error("the body is read behind the handler")
				}
			}
		})
	}
}

// earlyTarget responds with a 401 when it has received the first byte of a body and ready has returned.
func earlyTarget(t *testing.T, ready func()) string {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		if _, err := p.R.Peek(1); err != nil {
			return
		}
		p.Header()
		_, _ = p.R.ReadByte()
		ready()
		p.Send("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
		p.Ended()
	})
}

// What unread bodies hold of an HTTP/2 connection's window is given back: the connection
// serves as many more as before.
func TestEarlyResponsesOfOneConnection(t *testing.T) {
	onPathsParallel(t, testEarlyResponsesOfOneConnection)
}
func testEarlyResponsesOfOneConnection(t *testing.T, via path) {
	for _, name := range []string{"HTTP/2", "h2c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			early := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/early" {
					w.Header().Set("Connection", "close")
					w.WriteHeader(401)
					return
				}
				n, err := io.Copy(io.Discard, r.Body)
				if n != 3<<20 || err != nil {
					t.Errorf("%d bytes, error %v", n, err)
				}
			}))
			client, url := clientFronts[name](t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, early)}))
			large := strings.Repeat("x", 3<<20)
			for range 10 {
				if resp, err := client.Post(url+"/early", "text/plain", strings.NewReader(large)); err == nil {
					resp.Body.Close()
				}
			}
			resp, err := client.Post(url, "text/plain", strings.NewReader(large))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("response %s", resp.Status)
			}
		})
	}
}

// A filter that decodes the request's body is not used behind its handler, when its decoder has gone.
func TestDecoderBehindTheHandler(t *testing.T) { onPathsParallel(t, testDecoderBehindTheHandler) }
func testDecoderBehindTheHandler(t *testing.T, via path) {
	decompress, err := filters.Decompress(filters.DecompressOptions{Requests: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, front := range clientFronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := earlyTarget(t, func() {})
			h := decompress(newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}))
			client, url := front(t, h)
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					content, send := io.Pipe()
					defer send.Close()
					go func() {
						z := gzip.NewWriter(send)
						for range 200 {
							if _, err := z.Write(wiretest.Pattern(1000)); err != nil || z.Flush() != nil {
								return
							}
						}
						send.Close()
					}()
					r, err := http.NewRequestWithContext(t.Context(), "POST", url, content)
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Content-Encoding", "gzip")
					if resp, err := client.Do(r); err == nil {
						resp.Body.Close()
					}
				})
			}
			clients.Wait()
		})
	}
}

// A client that falls silent in a body which no target has read does not hold its connection: net/http reads what
// is left before it sends the response, and has as much time for it as the proxy.
func TestSilenceInABodyThatIsNotRead(t *testing.T) { onPaths(t, testSilenceInABodyThatIsNotRead) }
func testSilenceInABodyThatIsNotRead(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		group := groupOf(t, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", MaxConns: 1})
		lease, err := group.Pick(t.Context(), httptest.NewRequest("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Done(upstream.Outcome{Status: 200})
		p := newProxy(t, via, proxy.Options{Upstream: group, ReadTimeout: 50 * time.Millisecond})
		if got := wiretest.Unsent(t, p, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Errorf("the client got %q", got)
		}
	})
}
