package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// endingWriter is the writer of a handler, and records what is called of it after the handler has returned.
type endingWriter struct {
	http.ResponseWriter

	mu       sync.Mutex
	returned bool
	late     []string
}

// guard is a filter whose handlers have an endingWriter each.
func guard(t *testing.T, where string) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := &endingWriter{ResponseWriter: w}
			t.Cleanup(func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				if len(e.late) > 0 {
					t.Errorf("%s: called after the handler's return: %v", where, e.late)
				}
			})
			defer func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.returned = true
			}()
			next.ServeHTTP(e, r)
		})
	}
}

func (e *endingWriter) called(method string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.returned {
		e.late = append(e.late, method)
	}
}

func (e *endingWriter) Header() http.Header {
	e.called("Header")
	return e.ResponseWriter.Header()
}

func (e *endingWriter) WriteHeader(status int) {
	e.called("WriteHeader")
	e.ResponseWriter.WriteHeader(status)
}

func (e *endingWriter) Write(p []byte) (int, error) {
	e.called("Write")
	return e.ResponseWriter.Write(p)
}

func (e *endingWriter) FlushError() error {
	e.called("FlushError")
	return http.NewResponseController(e.ResponseWriter).Flush()
}

func (e *endingWriter) SetReadDeadline(d time.Time) error {
	e.called("SetReadDeadline")
	return http.NewResponseController(e.ResponseWriter).SetReadDeadline(d)
}

func (e *endingWriter) SetWriteDeadline(d time.Time) error {
	e.called("SetWriteDeadline")
	return http.NewResponseController(e.ResponseWriter).SetWriteDeadline(d)
}

func (e *endingWriter) EnableFullDuplex() error {
	e.called("EnableFullDuplex")
	return http.NewResponseController(e.ResponseWriter).EnableFullDuplex()
}

func (e *endingWriter) Unwrap() http.ResponseWriter {
	e.called("Unwrap") // which reaches the server's own
	return e.ResponseWriter
}

// endingTargets are ways in which a target may take a request.
var endingTargets = map[string]func(*wiretest.Peer){
	"an early response": func(p *wiretest.Peer) {
		p.Header()
		_, _ = io.WriteString(p, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, p.R)
	},
	"a whole response": func(p *wiretest.Peer) {
		p.Header()
		_, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10000\r\n\r\n")
		for range 10 {
			_, _ = io.WriteString(p, strings.Repeat("x", 1000))
			time.Sleep(time.Second / 2)
		}
		_, _ = io.Copy(io.Discard, p.R)
	},
	"a stream that breaks off": func(p *wiretest.Peer) {
		p.Header()
		_, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
		time.Sleep(1500 * time.Millisecond)
		_, _ = io.WriteString(p, "6\r\nsecond\r\n")
	},
	"a stream that stalls": func(p *wiretest.Peer) {
		p.Header()
		_, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
		_, _ = io.Copy(io.Discard, p.R)
	},
	"interim responses": func(p *wiretest.Peer) {
		p.Header()
		for range 5 {
			_, _ = io.WriteString(p, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			time.Sleep(time.Second)
		}
		_, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwhole")
		_, _ = io.Copy(io.Discard, p.R)
	},
	"silence": func(p *wiretest.Peer) { _, _ = io.Copy(io.Discard, p.R) },
}

// endingClients are ways in which a client may make a request. None waits longer than a minute.
var endingClients = map[string]func(client *http.Client, url string){
	"slow": func(client *http.Client, url string) {
		upload(client, url, time.Minute, func(send io.Writer) {
			_, _ = io.WriteString(send, "x")
			time.Sleep(6 * time.Second)
			_, _ = io.WriteString(send, "y")
		})
	},
	"leaves": func(client *http.Client, url string) {
		upload(client, url, 2*time.Second, func(send io.Writer) { _, _ = io.WriteString(send, "x") })
	},
	"expects": func(client *http.Client, url string) {
		upload(client, url, time.Minute, func(send io.Writer) { time.Sleep(4 * time.Second) }, "100-continue")
	},
}

// upload makes a request, and abandons it after a time.
func upload(client *http.Client, url string, leaves time.Duration, send func(io.Writer), expect ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaves)
	defer cancel()
	body, w := io.Pipe()
	go func() {
		send(w)
		w.Close()
	}()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if expect != nil {
		r.Header["Expect"] = expect
	}
	r.Header.Set("Accept-Encoding", "gzip")
	if resp, err := client.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	body.Close()
}

// Nothing of a writer is used after its handler has returned, however the exchange ends: net/http's server panics for some
// of it, and some would be meant for another request. Each handler of a chain has its own time.
func TestWritersEndWithTheirHandlers(t *testing.T) {
	onPathsParallel(t, testWritersEndWithTheirHandlers)
}
func testWritersEndWithTheirHandlers(t *testing.T, via path) {
	timeout, err := filters.Timeout(2 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		t.Fatal(err)
	}
	panics := func(*proxy.Response) { panic(http.ErrAbortHandler) }
	for name, o := range map[string]struct {
		proxy  proxy.Options
		around []culvert.Filter
	}{
		"plain":                  {},
		"a timeout":              {proxy: proxy.Options{Timeout: 2 * time.Second}},
		"timeouts of the client": {proxy: proxy.Options{ReadTimeout: time.Second, WriteTimeout: time.Second}},
		"late flushes":           {proxy: proxy.Options{FlushInterval: time.Second, WriteTimeout: time.Second}},
		"a hook that panics":     {proxy: proxy.Options{ModifyResponse: panics}},
		"filters":                {proxy: proxy.Options{WriteTimeout: time.Second}, around: []culvert.Filter{timeout, compress}},
	} {
		for target, script := range endingTargets {
			for who, client := range endingClients {
				for _, front := range []string{"HTTP/1.1", "h2c"} {
					t.Run(strings.Join([]string{name, target, who, front}, ", "), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							endExchange(t, via, o.proxy, o.around, front, script, client)
						})
					})
				}
			}
		}
	}
}

// endExchange runs an exchange with a gateway, and waits until all that may still run has ended.
func endExchange(t *testing.T, via path, o proxy.Options, around []culvert.Filter, front string, script func(*wiretest.Peer), exchange func(*http.Client, string)) {
	t.Cleanup(func() { time.Sleep(time.Hour) })
	o.Upstream = groupOf(t, upstream.Options{DialContext: pipeTo(func(c net.Conn) { script(wiretest.NewPeer(t, c)) })},
		upstream.Target{Addr: "192.0.2.1:80"})
	chain := append([]culvert.Filter{guard(t, "outside")}, around...)
	chain = append(chain, guard(t, "around the proxy"))
	client, url := frontInBubble(t, front, filters.NewChain(chain...).Then(newProxy(t, via, o)))
	exchange(client, url)
	time.Sleep(time.Hour)
}
