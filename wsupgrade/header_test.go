package wsupgrade_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Fields that Connection names are removed, but never those on which the handshake or the target's
// decision depends; no field is invented.
func TestHeaderAtTheTarget(t *testing.T) {
	leaktest.Check(t)
	target, headers := echoing(t, "websocket")
	p := wiretest.Dial(t, gateway(t, wsupgrade.Options{}, target))
	p.Send("GET /chat?a=1 HTTP/1.1\r\n" +
		"Host: culvert.test\r\n" +
		"Connection: keep-alive, Upgrade, Sec-WebSocket-Key, Host, Origin, Authorization, X-Forwarded-For, X-Hop\r\n" +
		"Upgrade: websocket, h2c\r\n" +
		"Sec-WebSocket-Key: " + key + "\r\n" +
		"Sec-WebSocket-Version: 13\r\n" +
		"Origin: http://culvert.test\r\n" +
		"Authorization: Bearer x\r\n" +
		"Cookie: a=b\r\n" +
		"X-Forwarded-For: 192.0.2.1\r\n" +
		"X-Forwarded-Proto: https\r\n" +
		"X-Real-IP: 192.0.2.1\r\nX-Forwarded-Port: 1\r\nX-Original-URL: /admin\r\nX_Forwarded_For: 192.0.2.1\r\n" +
		"Forwarded: for=192.0.2.1\r\n" +
		"X-Hop: gone\r\nKeep-Alive: 5\r\nTE: gzip\r\nProxy-Authorization: Basic x\r\nHTTP2-Settings: AAMA\r\nContent-Length: 0\r\n" +
		"X-Kept: a\r\nX-Kept: b\r\n" +
		"\r\n")
	sameHeader(t, wiretest.Await(t, headers, "header"), "GET /chat?a=1 HTTP/1.1\r\n"+
		"Host: culvert.test\r\n"+
		"Connection: Upgrade\r\n"+
		"Upgrade: websocket\r\n"+
		"Sec-WebSocket-Key: "+key+"\r\n"+
		"Sec-WebSocket-Version: 13\r\n"+
		"Origin: http://culvert.test\r\n"+
		"Authorization: Bearer x\r\n"+
		"Cookie: a=b\r\n"+
		"X-Forwarded-For: 127.0.0.1\r\n"+
		"X-Forwarded-Host: culvert.test\r\n"+
		"X-Forwarded-Proto: http\r\n"+
		"X-Kept: a\r\nX-Kept: b\r\n"+
		"\r\n")
	p.Header()
}

func TestRequestTargetIsKept(t *testing.T) {
	leaktest.Check(t)
	for _, target := range []string{
		"/", "/?", "/a%2Fb/../c", "/a;b=c/%7e~", "/a|b\"<>`{}^", "/caf\xc3\xa9/%C3%A9", "/%41?z=1&a=2&sig=%zz;x", "//double//slash", "//double|\"", "/a?b?c=d", "/a#b", "/+%20%2b",
	} {
		t.Run(target, func(t *testing.T) {
			addr, headers := echoing(t, "websocket")
			direct := forwarder(t, wsupgrade.Options{}).Handler(&url.URL{Scheme: "ws", Host: addr, Path: "/ignored"})
			p := wiretest.Dial(t, wiretest.Serve(t, direct)) // a ServeMux would redirect some of these
			p.Send(strings.Replace(handshake, "/chat", target, 1))
			line, _, _ := strings.Cut(wiretest.Await(t, headers, "header"), "\r\n")
			if want := "GET " + target + " HTTP/1.1"; line != want {
				t.Errorf("the target got %q, want %q", line, want)
			}
			p.Header()
		})
	}
}

// The request is sent as a hook has changed out.
func TestOutboundRequest(t *testing.T) {
	leaktest.Check(t)
	for _, test := range []struct {
		name   string
		change func(out *http.Request)
		want   []string
		not    string
	}{
		{"opaque path", func(out *http.Request) { out.URL.Opaque = "/raw%2f|"; out.URL.RawQuery = "q=%zz" }, []string{"GET /raw%2f|?q=%zz HTTP/1.1\r\nHost: culvert.test\r\n"}, ""},
		{"opaque path with two slashes", func(out *http.Request) { out.URL.Opaque = "//culvert.test//a|" }, []string{"GET //culvert.test//a| HTTP/1.1\r\n"}, ""},
		{"changed path", func(out *http.Request) { out.URL.Path = "/a b"; out.URL.RawPath = "/chat%2f" }, []string{"GET /a%20b HTTP/1.1\r\n"}, ""},
		{"no user agent", func(out *http.Request) { out.Header["User-Agent"] = []string{""} }, nil, "User-Agent"},
		{"a field with a line break", func(out *http.Request) { out.Header["X-A"] = []string{"b\r\nX-Evil: c"} }, []string{"X-A: b  X-Evil: c\r\n"}, ""},
		{"more offers", func(out *http.Request) {
			out.Header["Connection"] = []string{"Upgrade, HTTP2-Settings"}
			out.Header["Upgrade"] = []string{"h2c, websocket"}
		}, []string{"Connection: Upgrade\r\nUpgrade: websocket\r\n"}, "h2c"},
		{"a body's fields", func(out *http.Request) {
			out.Header.Set("Content-Length", "7")
			out.Header.Set("Transfer-Encoding", "chunked")
		}, nil, "7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			target, headers := echoing(t, "websocket")
			f := forwarder(t, wsupgrade.Options{})
			p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				out := outboundTo(r, target)
				test.change(out)
				if _, err := f.Forward(w, r, out); err != nil {
					t.Errorf("Forward: %v", err)
				}
			})))
			p.Send(handshake)
			header := wiretest.Await(t, headers, "header")
			for _, want := range test.want {
				if !strings.Contains(header, want) {
					t.Errorf("the target got %q without %q", header, want)
				}
			}
			if test.not != "" && strings.Contains(header, test.not) {
				t.Errorf("the target got %q", header)
			}
			p.Header()
		})
	}
}

// A hook that breaks the request line is refused before anything is dialled.
func TestUnwritableRequest(t *testing.T) {
	leaktest.Check(t)
	for name, change := range map[string]func(*http.Request){
		"star":   func(out *http.Request) { out.URL.Path, out.URL.RawPath = "*", "" },
		"path":   func(out *http.Request) { out.URL.Opaque = "/a HTTP/1.1\r\nX: y" },
		"query":  func(out *http.Request) { out.URL.RawQuery = "a b" },
		"host":   func(out *http.Request) { out.Host = "a\r\nX: y" },
		"method": func(out *http.Request) { out.Method = "GET /" },
	} {
		f := forwarder(t, wsupgrade.Options{})
		p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := outboundTo(r, "127.0.0.1:1")
			change(out)
			_, err := f.Forward(w, r, out)
			wsupgrade.Refuse(w, asError(err))
		})))
		p.Send(handshake)
		if resp, _ := p.Response("GET"); resp.StatusCode != 400 {
			t.Errorf("%s: response %s, want 400", name, resp.Status)
		}
	}
}

// If the hook removes the upgrade, the request is a plain one: its response is relayed, and a 101
// is one that was not requested.
func TestUpgradeTakenOut(t *testing.T) {
	leaktest.Check(t)
	for reply, want := range map[string]int{
		switching: 502,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok": 200,
	} {
		headers := make(chan string, 1)
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			headers <- p.Header()
			p.Send(reply)
			if got := p.Ended(); got != "" {
				t.Errorf("the target got %q", got)
			}
		})
		f := forwarder(t, wsupgrade.Options{})
		p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := outboundTo(r, target)
			delete(out.Header, "Upgrade")
			delete(out.Header, "Connection")
			if _, err := f.Forward(w, r, out); err != nil {
				wsupgrade.Refuse(w, asError(err))
			}
		})))
		p.Send(handshake)
		p.Status(want)
		if header := wiretest.Await(t, headers, "header"); !strings.Contains(header, "Connection: close\r\n") || strings.Contains(header, "Upgrade: ") {
			t.Errorf("the target got %q", header)
		}
	}
}
