package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// hopTrailers are trailers that must not be sent past one hop, or in which a peer claims what
// belongs into the header section alone.
const hopTrailers = "Connection: close\r\nKeep-Alive: 5\r\nTe: gzip\r\nUpgrade: h2c\r\nProxy-Authorization: x\r\nHttp2-Settings: x\r\n" +
	"Host: evil\r\nAuthorization: x\r\nCookie: a=b\r\nSet-Cookie: a=b\r\nCache-Control: no-store\r\nContent-Type: x\r\nContent-Encoding: gzip\r\n" +
	"Content-Range: x\r\nIf-Match: x\r\nRange: x\r\nExpect: x\r\nMax-Forwards: 1\r\nLocation: /\r\nVary: *\r\nAge: 1\r\nExpires: 0\r\nDate: x\r\nRetry-After: 1\r\nX-Hop: 1\r\nX-Listed: 1\r\n"

const forgedTrailers = "Forwarded: for=x\r\nX-Forwarded-For: x\r\nX-Forwarded-Host: x\r\nX-Forwarded-Proto: x\r\nX-Forwarded-Port: 1\r\nX-Real-Ip: x\r\n"

// Trailers are cleaned by the rules of header fields, in both directions, announced or not, with a
// chain of filters in front and without.
func TestTrailersAreSanitised(t *testing.T) { onPaths(t, testTrailersAreSanitised) }
func testTrailersAreSanitised(t *testing.T, via path) {
	leaktest.Check(t)
	announced := "Trailer: X-Listed, X-Hop, Authorization, X-Sum\r\n"
	for name, head := range map[string]string{"announced": announced, "unannounced": ""} {
		for front, chain := range map[string]culvert.Filter{"chain": filters.NewChain().Then, "proxy alone": func(h http.Handler) http.Handler { return h }} {
			t.Run(name+", "+front, func(t *testing.T) {
				heads, seen := make(chan string, 1), make(chan string, 1)
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					heads <- p.Header()
					p.Receive("2\r\nhi\r\n0\r\n")
					seen <- p.Header()
					p.Send("HTTP/1.1 200 OK\r\nConnection: x-hop, X-Listed\r\nTransfer-Encoding: chunked\r\n" + head + "\r\n2\r\nhi\r\n0\r\n" + hopTrailers + "X-Sum: 2\r\n\r\n")
				})
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
				c := wiretest.Dial(t, wiretest.Serve(t, chain(p)))
				c.Send("POST / HTTP/1.1\r\nHost: a\r\nConnection: x-hop, X-Listed\r\nTransfer-Encoding: chunked\r\n" + head + "\r\n2\r\nhi\r\n0\r\n" + hopTrailers + forgedTrailers + "X-Sum: 1\r\n\r\n")
				if got := wiretest.Await(t, seen, "request"); got != "X-Sum: 1\r\n\r\n" {
					t.Errorf("the target got %q", got)
				}
				for _, got := range []string{wiretest.Await(t, heads, "head"), c.Header()} {
					if line := announcement(got); head != "" && line != "X-Sum" || head == "" && line != "" {
						t.Errorf("announced %q", line)
					}
				}
				c.Receive("2\r\nhi\r\n0\r\n")
				if got := c.Header(); got != "X-Sum: 2\r\n\r\n" {
					t.Errorf("the client got %q", got)
				}
			})
		}
	}
}

func announcement(head string) string {
	_, line, _ := strings.Cut(head, "\r\nTrailer: ")
	line, _, _ = strings.Cut(line, "\r\n")
	return line
}

// The same over HTTP/2, both ways.
func TestHTTP2TrailersAreSanitised(t *testing.T) { onPaths(t, testHTTP2TrailersAreSanitised) }
func testHTTP2TrailersAreSanitised(t *testing.T, via path) {
	got := make(chan http.Header, 1)
	client, address := overHTTP2(t, via, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer.Clone()
		_ = http.NewResponseController(w).Flush()
		for _, name := range []string{"X-Sum", "Set-Cookie", "Location"} {
			w.Header().Set(http.TrailerPrefix+name, "1")
		}
	}), proxy.Options{})
	r, err := http.NewRequestWithContext(t.Context(), "POST", address, io.MultiReader(strings.NewReader("hi")))
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Sum": {"1"}, "X-Forwarded-For": {"x"}, "Cookie": {"a=b"}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	for who, trailers := range map[string]http.Header{"target": wiretest.Await(t, got, "request"), "client": resp.Trailer} {
		if len(trailers) != 1 || trailers.Get("X-Sum") != "1" {
			t.Errorf("the %s got %v", who, trailers)
		}
	}
}
