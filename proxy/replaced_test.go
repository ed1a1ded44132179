package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// errorPages replaces the content of each error.
var errorPages = filters.ErrorPages(func(int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "replaced") })
})

// refusedContent is a transform that discards a content from its first piece on.
type refusedContent struct {
	w       io.Writer
	refused bool
}

func (b *refusedContent) Write(p []byte) (int, error) {
	b.refused = true
	return len(p), nil
}

func (b *refusedContent) Discards() bool { return b.refused }

func (b *refusedContent) Close() error {
	_, err := io.WriteString(b.w, "replaced")
	return err
}

// replacing are chains that replace the content of a 404.
var replacing = map[string][]culvert.Filter{
	"ErrorPages": {errorPages},
	"a transform, from its first piece on": {filters.OnResponse(filters.ResponseHooks{
		Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
			h.Del("Content-Length")
			return &refusedContent{w: w}
		},
	})},
	"ErrorPages around Decompress": {errorPages, mustFilter(filters.Decompress(filters.DecompressOptions{Responses: true}))},
}

func mustFilter(f culvert.Filter, err error) culvert.Filter {
	if err != nil {
		panic(err)
	}
	return f
}

// TestReplacedContent: a response whose content a filter replaces does not wait for that content, nor fail with it. Its target,
// which is silent or breaks off, is not to blame, and is not held.
func TestReplacedContent(t *testing.T) { onPathsParallel(t, testReplacedContent) }
func testReplacedContent(t *testing.T, via path) {
	for name, chain := range replacing {
		for protocol, version := range map[string]upstream.Protocol{"HTTP/1.1": upstream.HTTP1, "HTTP/2": upstream.H2C} {
			for _, client := range receivers {
				for _, o := range []proxy.Options{{}, {FlushInterval: time.Hour}, {ResponseBuffer: &proxy.Buffer{Memory: 10}}} {
					t.Run(name+", "+client.name+", target of "+protocol, func(t *testing.T) {
						t.Parallel() // each waits for the rest of the content, as long as it may take
						left := make(chan bool, 1)
						target := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
							w.Header().Set("Content-Encoding", "gzip")
							w.Header().Set("Content-Length", "1000000")
							w.WriteHeader(http.StatusNotFound)
							_, _ = io.WriteString(w, strings.Repeat("x", 100))
							_ = http.NewResponseController(w).Flush()
							<-r.Context().Done()
							left <- true
						})
						var failed failures
						o.Upstream, o.OnError = groupAt(t, upstream.Options{Protocol: version}, target), failed.add
						results := make(chan *culvert.Result, 1)
						h := filters.NewChain(chain...).Then(newProxy(t, via, o))
						got := client.receive(t, client.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							ctx, result := filters.WithResult(r.Context())
							h.ServeHTTP(w, r.WithContext(ctx))
							results <- result
						})), http.MethodGet)
						if !got.whole || got.body != "replaced" {
							t.Errorf("the client got %v", got)
						}
						wiretest.Await(t, left, "end of the request at the target")
						result := wiretest.Await(t, results, "result")
						if a := result.Attempts; result.Err != nil || len(a) != 1 || a[0].Err != nil || a[0].Status != http.StatusNotFound || a[0].Received > 100 {
							t.Errorf("result %+v", result)
						}
						if len(failed.all) > 0 {
							t.Errorf("OnError was called with %v", failed.all)
						}
						for s := range o.Upstream.(*upstream.Group).Targets() {
							if s.Fails != 0 || s.InFlight != 0 {
								t.Errorf("the target is %+v", s)
							}
						}
					})
				}
			}
		}
	}
}

// TestConnectionOfReplacedContent: the connection of a content that is replaced is kept if the rest is short and comes soon.
func TestConnectionOfReplacedContent(t *testing.T) { onPaths(t, testConnectionOfReplacedContent) }
func testConnectionOfReplacedContent(t *testing.T, via path) {
	for name, test := range map[string]struct {
		header string
		pieces []string
		pause  time.Duration
		kept   bool
	}{
		"received":        {"Content-Length: 4\r\n\r\nsome", nil, 0, true},
		"short":           {"Content-Length: 7\r\n\r\nsome", []string{"o", "n", "e"}, 10 * time.Millisecond, true},
		"chunks":          {"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nsome\r\n", []string{"0\r\n", "X-Sum: 1\r\n\r\n"}, 10 * time.Millisecond, true},
		"slow":            {"Content-Length: 7\r\n\r\nsome", []string{"o", "n", "e"}, time.Second, false},
		"long":            {"Content-Length: 1000000\r\n\r\n", []string{strings.Repeat("x", 1000000)}, 0, false},
		"broken off":      {"Content-Length: 7\r\n\r\nsome", []string{""}, 0, false},
		"up to the close": {"Connection: close\r\n\r\nsome", nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var conns atomic.Int32
				client, group := inBubble(t, via, proxy.Options{}, upstream.Options{}, func(p *wiretest.Peer) {
					defer p.Close()
					n := conns.Add(1)
					for range 2 {
						if line, err := p.R.ReadString('\n'); err != nil || !strings.HasPrefix(line, "GET /") {
							return
						}
						p.Header()
						_, _ = io.WriteString(p, "HTTP/1.1 404 Not Found\r\n"+test.header)
						for _, piece := range test.pieces {
							time.Sleep(test.pause)
							if _, err := io.WriteString(p, piece); err != nil || piece == "" {
								return
							}
						}
						if n > 1 {
							return
						}
					}
				}, errorPages)
				for range 2 {
					client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
					if resp, body := client.Response(http.MethodGet); resp.StatusCode != http.StatusNotFound || body != "replaced" || len(resp.Trailer) > 0 {
						t.Errorf("the client got %d %q %v", resp.StatusCode, body, resp.Trailer)
					}
				}
				synctest.Wait()
				if got := conns.Load() == 1; got != test.kept {
					t.Errorf("%d connections", conns.Load())
				}
				for s := range group.Targets() {
					if s.Fails != 0 || s.InFlight != 0 {
						t.Errorf("the target is %+v", s)
					}
				}
			})
		})
	}
}
