package proxy_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Path and query reach the target byte for byte: peers sort the query, drop what
// they can't parse, and decode or clean the path (facts: golang/go#54746,
// anubis#1764, oathkeeper#1255, traefik#12395).
var requestTargets = []string{
	"/",
	"/plain/path",
	"/a%2Fb//c",
	"/a/../b/./c",
	"/%41%7a/~%7E",
	"/caf%C3%A9/caf%c3%a9",
	"/semi;colon=1;x/,$&'()*+!:@",
	"/%00%0a%0D%20",
	"/trailing/",
	"/?",
	"/?z=1&a=2&sig=%zz",
	"/?a=1;b=2&&&c",
	"/?q=a+b%20c&utf=%ff&raw=[]{}|^`",
	"/path??double=?",
	"/|pipe^caret`tick\"quote<angle>",
	"/[brackets]{braces}",
	"//double/leading",
	"//a%2Fb",
	"///three",
	"/http://other.test/x",
	"/\x80\xfe\xff",
}

func TestRequestTargetByteForByte(t *testing.T) { onPaths(t, testRequestTargetByteForByte) }
func testRequestTargetByteForByte(t *testing.T, via path) {
	leaktest.Check(t)
	target, heads := recording(t, ok)
	client := wiretest.Dial(t, gateway(t, via, target))
	for _, want := range requestTargets {
		client.Send("GET " + want + " HTTP/1.1\r\nHost: culvert.test\r\n\r\n")
		client.Status(200)
		line, _, _ := strings.Cut(wiretest.Await(t, heads, "request"), "\r\n")
		if got := targetOf(line); got != want {
			t.Errorf("the target got %q, want %q", got, want)
		}
	}
}

// A path with two leading slashes is sent in origin form, too, though net/http can't say some of
// them: where it is the transport they are refused. The absolute form would be another target for some.
func TestTargetWithTwoSlashes(t *testing.T) { onPaths(t, testTargetWithTwoSlashes) }
func testTargetWithTwoSlashes(t *testing.T, via path) {
	leaktest.Check(t)
	target, heads := recording(t, ok)
	addr := gateway(t, via, target)
	for _, want := range []string{"//x|y", "//x|y?q=1", "//evil.test/\"a\"", "//\x80", "///a^b"} {
		client := wiretest.Dial(t, addr)
		client.Send("GET " + want + " HTTP/1.1\r\nHost: culvert.test\r\n\r\n")
		if via == httpTransport {
			client.Status(400)
			continue
		}
		client.Status(200)
		if got := targetOf(wiretest.Await(t, heads, "request")); got != want {
			t.Errorf("the target got %q, want %q", got, want)
		}
	}
	if len(heads) > 0 {
		t.Errorf("the target got %q", <-heads)
	}
}

// targetOf returns the target of a request line.
func targetOf(line string) string {
	line, _, _ = strings.Cut(line, "\r\n")
	return strings.TrimSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1")
}

// The request target of OPTIONS * has neither path nor query.
func TestOptionsAsterisk(t *testing.T) { onPaths(t, testOptionsAsterisk) }
func testOptionsAsterisk(t *testing.T, via path) {
	leaktest.Check(t)
	target, heads := recording(t, ok)
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("OPTIONS * HTTP/1.1\r\nHost: culvert.test\r\n\r\n")
	client.Status(200)
	if line, _, _ := strings.Cut(wiretest.Await(t, heads, "request"), "\r\n"); line != "OPTIONS * HTTP/1.1" {
		t.Errorf("the target got %q", line)
	}
}

// The absolute form names the host; Host must follow it (RFC 9112 section 3.2.2).
func TestAbsoluteForm(t *testing.T) { onPaths(t, testAbsoluteForm) }
func testAbsoluteForm(t *testing.T, via path) {
	leaktest.Check(t)
	target, heads := recording(t, ok)
	client := wiretest.Dial(t, gateway(t, via, target))
	client.Send("GET http://named.test/a%2Fb?x=%zz HTTP/1.1\r\nHost: other.test\r\n\r\n")
	client.Status(200)
	head := wiretest.Await(t, heads, "request")
	if !strings.HasPrefix(head, "GET /a%2Fb?x=%zz HTTP/1.1\r\nHost: named.test\r\n") {
		t.Errorf("the target got %q", head)
	}
}

// A hook's change of the path counts, and only that.
func TestRewrittenTarget(t *testing.T) { onPaths(t, testRewrittenTarget) }
func testRewrittenTarget(t *testing.T, via path) {
	leaktest.Check(t)
	tests := []struct {
		name    string
		rewrite func(*url.URL)
		want    string
	}{
		{"path alone", func(u *url.URL) { u.Path = "/new path" }, "/new%20path?q=%zz"},
		{"path and raw path", func(u *url.URL) { u.Path, u.RawPath = "/a/b", "/a%2fb" }, "/a%2fb?q=%zz"},
		{"a raw path of another path", func(u *url.URL) { u.Path, u.RawPath = "/a b", "/other" }, "/a%20b?q=%zz"},
		{"a broken raw path", func(u *url.URL) { u.Path, u.RawPath = "/a", "/%zz" }, "/a?q=%zz"},
		{"opaque", func(u *url.URL) { u.Opaque = "/any%zzbytes" }, "/any%zzbytes?q=%zz"},
		{"opaque with two slashes", func(u *url.URL) { u.Opaque = "//any/bytes" }, "//any/bytes?q=%zz"},
		{"no path", func(u *url.URL) { u.Path, u.RawPath = "", "" }, "/?q=%zz"},
		{"query", func(u *url.URL) { u.RawQuery = "b=2&a=1" }, "/old%2Fpath?b=2&a=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target, heads := recording(t, ok)
			p := newProxy(t, via, proxy.Options{
				Upstream: groupAt(t, upstream.Options{}, target),
				Rewrite:  func(o *proxy.Outbound) { test.rewrite(o.Out.URL) },
			})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET /old%2Fpath?q=%zz HTTP/1.1\r\nHost: culvert.test\r\n\r\n")
			client.Status(200)
			if line, _, _ := strings.Cut(wiretest.Await(t, heads, "request"), "\r\n"); targetOf(line) != test.want {
				t.Errorf("the target got %q, want %q", targetOf(line), test.want)
			}
		})
	}
}
