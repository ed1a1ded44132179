package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client that disconnects ends the exchange, though its body is not read: the target has not requested it, or has
// stopped reading it, and does not end its response.
func TestClientLeavesBeforeItsBody(t *testing.T) { onPathsParallel(t, testClientLeavesBeforeItsBody) }
func testClientLeavesBeforeItsBody(t *testing.T, via path) {
	const begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
	for name, test := range map[string]struct {
		header string
		script func(p *wiretest.Peer)
	}{
		"no 100": {"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", func(*wiretest.Peer) {}},
		"no 100, and the client waits no longer": {"Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhell", func(p *wiretest.Peer) {
			p.Receive("hell")
		}},
		"no 100, of chunks": {"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", func(*wiretest.Peer) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed failures
			ended := make(chan string, 1)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				test.script(p)
				p.Send(begun)
				ended <- p.Ended()
			})
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})))
			client.Send("POST / HTTP/1.1\r\nHost: a\r\n" + test.header)
			if strings.HasPrefix(client.Header(), "HTTP/1.1 100 ") { // the gateway's, when it reads
				client.Header()
			}
			client.Receive("1\r\nx\r\n")
			client.Close()
			if rest := wiretest.Await(t, ended, "end of the exchange"); rest != "" {
				t.Errorf("the target got %q", rest)
			}
			failed.await(t)
			if e := failed.only(t); e.Kind != culvert.ClientGone || !e.HeaderSent {
				t.Errorf("failure %#v", e)
			}
		})
	}
}

// A target that responds after it has read the beginning of a body that it did not request gets the rest of the body.
func TestRestOfABodyBehindTheHeader(t *testing.T) { onPathsParallel(t, testRestOfABodyBehindTheHeader) }
func testRestOfABodyBehindTheHeader(t *testing.T, via path) {
	for name, front := range clientFronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Receive("6\r\nfirst \r\n")
				p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
				p.Receive("6\r\nsecond\r\n0\r\n\r\n")
				p.Send("0\r\n\r\n")
				p.Ended()
			})
			client, url := front(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}))
			content, send := io.Pipe()
			r, err := http.NewRequestWithContext(t.Context(), "POST", url, content)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Expect", "100-continue")
			go func() { _, _ = io.WriteString(send, "first ") }()
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(send, "second")
			send.Close()
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("and then %q, error %v", rest, err)
			}
		})
	}
}
