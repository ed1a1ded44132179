package culvert_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"reflect"
	"regexp"
	"slices"
	"strings"
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

// docs/from-httputil.md names each field and method of httputil.ReverseProxy and its request, and each field of http.Transport.
func TestHTTPUtilPageNamesAllFields(t *testing.T) {
	page := read(t, "docs/from-httputil.md")
	for _, of := range []struct {
		prefix string
		typ    reflect.Type
	}{
		{"ReverseProxy.", reflect.TypeFor[*httputil.ReverseProxy]()},
		{"ProxyRequest.", reflect.TypeFor[*httputil.ProxyRequest]()},
		{"BufferPool.", reflect.TypeFor[httputil.BufferPool]()},
		{"", reflect.TypeFor[*http.Transport]()},
	} {
		var names []string
		if of.prefix != "" { // the methods of a transport are for a proxy, not for people
			for i := range of.typ.NumMethod() {
				names = append(names, of.typ.Method(i).Name)
			}
		}
		if of.typ.Kind() == reflect.Pointer {
			for _, field := range reflect.VisibleFields(of.typ.Elem()) {
				if field.IsExported() {
					names = append(names, field.Name)
				}
			}
		}
		for _, name := range names {
			if !strings.Contains(page, "`"+of.prefix+name+"`") {
				t.Errorf("the page does not name %s%s", of.prefix, name)
			}
		}
	}
}

// What the page says of our options is in our structs.
func TestHTTPUtilPageNamesOurFields(t *testing.T) {
	page := read(t, "docs/from-httputil.md")
	_, table, _ := strings.Cut(page, "| `http.Transport` | `upstream.Options` |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n")[2:] {
		for _, match := range regexp.MustCompile("`(Target\\.)?([A-Z][A-Za-z]+)(?:: [^`]*)?`").FindAllStringSubmatch(strings.Split(row, "|")[2], -1) {
			of := reflect.TypeFor[upstream.Options]()
			if match[1] != "" {
				of = reflect.TypeFor[upstream.Target]()
			}
			if _, ok := of.FieldByName(match[2]); !ok {
				t.Errorf("%v has no field %s", of, match[2])
			}
		}
	}
}

// Each row of "What changes by default" is what happens with the zero options.
func TestDefaultsBesideHTTPUtil(t *testing.T) {
	leaktest.Check(t)
	tests := map[string]func(*testing.T){
		"Host": func(t *testing.T) {
			received(t, nil, "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", "Host: shop.example")
			received(t, func(o *proxy.Outbound) { o.Out.Host = "" }, "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", "Host: 127.0.0.1:")
		},
		"X-Forwarded": func(t *testing.T) {
			request := "GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n\r\n"
			got := received(t, nil, request, "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: http\r\n", "X-Forwarded-Host: shop.example\r\n")
			lacks(t, got, "192.0.2.1")
			lacks(t, received(t, func(*proxy.Outbound) {}, request), "X-Forwarded")
		},
		"Other claims": func(t *testing.T) {
			request := "GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: 192.0.2.1\r\nX-Forwarded-Prefix: /evil\r\n\r\n"
			got := received(t, nil, request)
			lacks(t, got, "192.0.2.1")
			lacks(t, got, "evil")
			received(t, func(o *proxy.Outbound) { o.KeepForwarded() }, request, "192.0.2.1", "/evil")
		},
		"Fields in Connection": func(t *testing.T) {
			received(t, nil, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Authorization\r\nAuthorization: Bearer x\r\n\r\n", "Authorization: Bearer x")
		},
		"Path and query": func(t *testing.T) {
			received(t, func(*proxy.Outbound) {}, "GET /a%2Fb//c;d?z=1&a=%zz;b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%2Fb//c;d?z=1&a=%zz;b HTTP/1.1\r\n")
		},
		"Compression":      testNoCompression,
		"Content-Type":     testNoContentType,
		"Status of errors": testStatusOfErrors,
		"Text of errors":   testTextOfErrors,
		"Client gone":      testClientGone,
		"WebSocket of another origin": func(t *testing.T) {
			refuses(t, upgrading(t, "websocket", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), handshake("websocket", "Origin: https://other.example\r\n"), 403)
		},
		"Other upgrades": func(t *testing.T) {
			lacks(t, received(t, nil, handshake("spdy/3.1", "")), "Upgrade")
		},
		"Handshake": func(t *testing.T) {
			refuses(t, upgrading(t, "websocket", "not-its-key"), handshake("websocket", ""), 502)
		},
		"Time to connect":               testTimeToConnect,
		"Time to the response's header": testTimeToHeader,
		"Slow clients":                  testSlowClient,
		"Silent bodies":                 testSilentBody,
		"Header size":                   testHeaderSize,
		"Trailers of requests":          testTrailersOfRequests,
		"Flush":                         testFlush,
		"Dial errors":                   testDialErrors,
		"Other retries":                 testNoRetries,
		"Ejection":                      testEjection,
	}
	_, table, _ := strings.Cut(read(t, "docs/from-httputil.md"), "## What changes by default")
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []string
	for _, match := range regexp.MustCompile(`(?m)^\| \*\*([^*]+)\*\* \|`).FindAllStringSubmatch(table, -1) {
		rows = append(rows, match[1])
	}
	for name, test := range tests {
		if !slices.Contains(rows, name) {
			t.Errorf("the page has no row %q", name)
		}
		t.Run(name, test)
	}
	for _, row := range rows {
		if tests[row] == nil {
			t.Errorf("row %q has no test", row)
		}
	}
}

// defaults returns a gateway with the zero options over targets.
func defaults(t *testing.T, o proxy.Options, targets ...string) http.Handler {
	t.Helper()
	group := upstream.Options{Name: "app"}
	var list []upstream.Target
	for _, addr := range targets {
		list = append(list, upstream.Target{Addr: addr})
	}
	return defaultsOver(t, o, group, list...)
}

func defaultsOver(t *testing.T, o proxy.Options, group upstream.Options, targets ...upstream.Target) http.Handler {
	t.Helper()
	app, err := upstream.New(group, targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { app.Close() })
	o.Upstream = app
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return filters.NewChain().Then(p)
}

// received sends request through a gateway, and returns the header section that its target receives, which must have want.
func received(t *testing.T, rewrite func(*proxy.Outbound), request string, want ...string) string {
	t.Helper()
	header := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		header <- p.Header()
		p.Send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	client := wiretest.Dial(t, wiretest.Serve(t, defaults(t, proxy.Options{Rewrite: rewrite}, target)))
	client.Send(request)
	client.Status(204)
	got := wiretest.Await(t, header, "the request")
	for _, part := range want {
		if !strings.Contains(got, part) {
			t.Errorf("the target received no %q:\n%s", part, got)
		}
	}
	return got
}

func lacks(t *testing.T, got, part string) {
	t.Helper()
	if strings.Contains(got, part) {
		t.Errorf("%q in\n%s", part, got)
	}
}

// handshake is the request of RFC 6455 section 1.3.
func handshake(protocol, fields string) string {
	return "GET /chat HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" + fields + "\r\n"
}

// upgrading is a target that responds with a 101.
func upgrading(t *testing.T, protocol, accept string) (addr string) {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		if _, err := http.ReadRequest(p.R); err == nil {
			p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\nSec-WebSocket-Accept: " + accept + "\r\n\r\n")
		}
	})
}

func refuses(t *testing.T, target, request string, status int) {
	t.Helper()
	client := wiretest.Dial(t, wiretest.Serve(t, defaults(t, proxy.Options{}, target)))
	client.Send(request)
	client.Status(status)
}

func testNoCompression(t *testing.T) {
	lacks(t, received(t, nil, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "Accept-Encoding")
	received(t, nil, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n", "Accept-Encoding: br\r\n")
}

func testNoContentType(t *testing.T) {
	target := wiretest.Replying(t, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>")
	client := wiretest.Dial(t, wiretest.Serve(t, defaults(t, proxy.Options{}, target)))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	lacks(t, client.Header(), "Content-Type")
}

// status returns the response of a gateway with the zero options.
func status(t *testing.T, h http.Handler) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.example/", nil))
	return w.Result()
}

func testStatusOfErrors(t *testing.T) {
	if got := status(t, defaults(t, proxy.Options{}, wiretest.Replying(t, "no response\r\n\r\n"))).StatusCode; got != 502 {
		t.Errorf("a broken response: status %d", got)
	}
	down := defaultsOver(t, proxy.Options{}, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", Down: true})
	if got := status(t, down); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" {
		t.Errorf("no target: status %d, %v", got.StatusCode, got.Header)
	}
}

func testTrailersOfRequests(t *testing.T) {
	got := make(chan http.Header, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer
	}))
	defer target.Close()
	addr := target.Listener.Addr().String()
	send := func(h http.Handler, announced string) http.Header {
		client := wiretest.Dial(t, wiretest.Serve(t, h))
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" + announced + "\r\n1\r\nx\r\n0\r\nX-Sum: 42\r\n\r\n")
		client.Status(200)
		return wiretest.Await(t, got, "the request")
	}
	for _, announced := range []string{"", "Trailer: X-Sum\r\n"} {
		if sum := send(defaults(t, proxy.Options{}, addr), announced).Get("X-Sum"); sum != "42" {
			t.Errorf("with %q the target received %q, want 42", announced, sum)
		}
	}
}

func testTextOfErrors(t *testing.T) {
	resp := status(t, defaults(t, proxy.Options{}, wiretest.Unused(t)))
	if body, err := io.ReadAll(resp.Body); string(body) != "Bad Gateway\n" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

func testClientGone(t *testing.T) {
	reached := make(chan bool)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		close(reached)
		p.Ended()
	})
	failed := make(chan *culvert.Error, 1)
	h := defaults(t, proxy.Options{
		OnError:      func(_ *http.Request, err *culvert.Error) { failed <- err },
		ErrorHandler: func(http.ResponseWriter, *http.Request, *culvert.Error) { t.Error("ErrorHandler was called") },
	}, target)
	client := wiretest.Dial(t, wiretest.Serve(t, h))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, reached, "the request")
	client.Close()
	if err := wiretest.Await(t, failed, "the failure"); err.Kind != culvert.ClientGone || err.Status() != 499 {
		t.Errorf("%v, status %d", err, err.Status())
	}
}

// inBubble runs a gateway with the zero options in virtual time, before a target at the other end of a pipe, which script
// is. It returns the response's status, 0 if there is none, and the time to the response. A nil script is a target that can't be dialled.
func inBubble(t *testing.T, request string, script func(target net.Conn)) (code int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group := upstream.Options{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if script == nil {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				script(far)
			}()
			return near, nil
		}}
		h := defaultsOver(t, proxy.Options{}, group, upstream.Target{Addr: "192.0.2.1:80"})
		client, far := net.Pipe()
		s := &http.Server{Handler: h, ErrorLog: wiretest.Quiet()}
		listener := wiretest.OneConn(far)
		go s.Serve(listener)
		begun := time.Now()
		peer := &wiretest.Peer{Conn: client}
		defer client.Close()
		if _, err := io.WriteString(peer, request); err != nil {
			t.Fatal(err)
		}
		var response [12]byte
		if _, err := io.ReadFull(client, response[:]); err == nil {
			fmt.Sscanf(string(response[:]), "HTTP/1.1 %d", &code)
		}
		took = time.Since(begun)
		client.Close()
		s.Close()
		time.Sleep(time.Second) // of the bubble: net/http waits before it closes a connection
	})
	return code, took
}

func testTimeToConnect(t *testing.T) {
	if code, took := inBubble(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", nil); code != 504 || took != 10*time.Second {
		t.Errorf("status %d after %v", code, took)
	}
}

func testTimeToHeader(t *testing.T) {
	silent := func(target net.Conn) { _, _ = io.Copy(io.Discard, target) }
	if code, took := inBubble(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", silent); code != 504 || took < time.Minute || took > 76*time.Second {
		t.Errorf("status %d after %v", code, took)
	}
}

func testSlowClient(t *testing.T) {
	silent := func(target net.Conn) { _, _ = io.Copy(io.Discard, target) }
	code, took := inBubble(t, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", silent)
	if code != 408 || took < time.Minute || took > 76*time.Second {
		t.Errorf("status %d after %v", code, took)
	}
}

func testSilentBody(t *testing.T) {
	code, took := inBubble(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(target net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, target) }()
		_, _ = io.WriteString(target, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
		time.Sleep(48 * time.Hour)
		_, _ = io.WriteString(target, "x")
	})
	if code != 200 {
		t.Errorf("status %d after %v", code, took)
	}
}

func testHeaderSize(t *testing.T) {
	for size, want := range map[int]int{60 << 10: 200, 70 << 10: 502} {
		target := wiretest.Replying(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: "+strings.Repeat("a", size)+"\r\n\r\n")
		if got := status(t, defaults(t, proxy.Options{}, target)).StatusCode; got != want {
			t.Errorf("a header of %d bytes: status %d, want %d", size, got, want)
		}
	}
}

func testFlush(t *testing.T) {
	target := wiretest.Replying(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf") // and then it pauses
	client := wiretest.Dial(t, wiretest.Serve(t, defaults(t, proxy.Options{}, target)))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Header()
	client.Receive("half")
	client.Close()
}

func testDialErrors(t *testing.T) {
	target := wiretest.Replying(t, "HTTP/1.1 204 No Content\r\n\r\n")
	for o, want := range map[int]int{0: 204, 1: 502} {
		h := defaults(t, proxy.Options{Retry: proxy.Retry{Tries: o}}, wiretest.Unused(t), target)
		if got := status(t, h).StatusCode; got != want {
			t.Errorf("Tries %d: status %d, want %d", o, got, want)
		}
	}
}

func testNoRetries(t *testing.T) {
	breaks := wiretest.Target(t, func(p *wiretest.Peer) { p.Header() })
	if got := status(t, defaults(t, proxy.Options{}, breaks, wiretest.Replying(t, "HTTP/1.1 204 No Content\r\n\r\n"))).StatusCode; got != 502 {
		t.Errorf("status %d", got)
	}
}

func testEjection(t *testing.T) {
	h := defaults(t, proxy.Options{}, wiretest.Replying(t, "no response\r\n\r\n"), wiretest.Target(t, func(p *wiretest.Peer) {
		for p.Header() != "" {
			p.Send("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
	}))
	var got []int
	for range 4 {
		got = append(got, status(t, h).StatusCode)
	}
	if want := []int{502, 500, 500, 500}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	alone := defaults(t, proxy.Options{}, wiretest.Replying(t, "no response\r\n\r\n"))
	for range 3 {
		if got := status(t, alone).StatusCode; got != 502 {
			t.Errorf("the only target: status %d", got)
		}
	}
}
