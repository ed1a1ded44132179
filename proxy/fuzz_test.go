package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// FuzzRequestTarget: any path and query that net/http's server accepts reach the target byte
// for byte, or are refused: a path of two leading slashes that net/http's transport would encode anew.
func FuzzRequestTarget(f *testing.F) {
	for _, target := range requestTargets {
		f.Add(target)
	}
	f.Add("//\"")
	var sent bytes.Buffer
	p := newProxy(f, ownExchange, proxy.Options{Upstream: groupAt(f, upstream.Options{Transport: writing{&sent}}, "127.0.0.1:1")})
	f.Fuzz(func(t *testing.T, want string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + want + " HTTP/1.1\r\nHost: culvert.test\r\n\r\n")))
		if err != nil || r.RequestURI != want || !strings.HasPrefix(want, "/") {
			return
		}
		sent.Reset()
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if encodedAnew(r) && w.Code == http.StatusBadRequest && sent.Len() == 0 {
			return
		}
		line, _, _ := strings.Cut(sent.String(), "\r\n")
		if got := targetOf(line); got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	})
}

// encodedAnew reports whether r's path has two leading slashes and would be encoded anew by net/http's transport.
func encodedAnew(r *http.Request) bool {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return strings.HasPrefix(path, "//") && r.URL.EscapedPath() != path
}

// writing is a Transport that writes the request as net/http does.
type writing struct{ w io.Writer }

func (w writing) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Write(w.w); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// finalRecorder drops interim responses, which a ResponseRecorder takes for final ones.
type finalRecorder struct{ *httptest.ResponseRecorder }

func (w finalRecorder) WriteHeader(status int) {
	if status >= 200 {
		w.ResponseRecorder.WriteHeader(status)
	}
}

// FuzzResponse: for any bytes that a target sends, the client gets a valid response or an
// abort, and never a hop-by-hop field.
func FuzzResponse(f *testing.F) {
	for _, response := range []string{
		ok, "", "HTTP/1.1 099 Odd\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + ok,
		"HTTP/1.1 200 OK\r\nConnection: X\r\nX: 1\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2\r\nok\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nuntil the end",
		"HTTP/1.1 426 Upgrade Required\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhalf",
	} {
		f.Add(response)
	}
	f.Fuzz(func(t *testing.T, response string) {
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, target := net.Pipe()
			go func() {
				defer target.Close()
				if _, err := http.ReadRequest(bufio.NewReader(target)); err == nil {
					_, _ = io.WriteString(target, response)
				}
			}()
			return client, nil
		}, DisableCompression: true}
		defer transport.CloseIdleConnections()
		u := groupOf(t, upstream.Options{Transport: transport}, upstream.Target{Addr: "127.0.0.1:1"})
		p := newProxy(t, ownExchange, proxy.Options{Upstream: u})
		w := finalRecorder{httptest.NewRecorder()}
		func() {
			defer func() {
				if v := recover(); v != nil && v != http.ErrAbortHandler {
					panic(v)
				}
			}()
			p.ServeHTTP(w, &http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Host: "a"})
		}()
		if w.Code < 200 || w.Code > 999 {
			t.Errorf("status %d", w.Code)
		}
		for _, name := range []string{"Keep-Alive", "Transfer-Encoding", "Proxy-Authenticate"} {
			if w.Header().Get(name) != "" {
				t.Errorf("%s: %q", name, w.Header().Get(name))
			}
		}
	})
}

// A cookie is kept byte for byte if no change is configured. Its name and value are kept with any.
func FuzzCookies(f *testing.F) {
	for _, seed := range []string{"a=b; Path=/; Domain=x", "a=\"b;c\"; ;;", "=", "a; domain ; path = ", ";Path=/;Path=/"} {
		f.Add(seed)
	}
	rewrite := proxy.CookieRewrite{Domain: func(string) string { return "" }, Path: func(p string) string { return "/x" + p }, Secure: true}
	f.Fuzz(func(t *testing.T, line string) {
		a := &proxy.Response{Header: http.Header{"Set-Cookie": {line}}}
		if a.RewriteCookies(proxy.CookieRewrite{}); a.Header.Get("Set-Cookie") != line {
			t.Errorf("%q became %q", line, a.Header.Get("Set-Cookie"))
		}
		a.RewriteCookies(rewrite)
		got, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
		if want, _, _ := strings.Cut(line, ";"); got != want {
			t.Errorf("%q became %q", line, a.Header.Get("Set-Cookie"))
		}
		if rest := strings.ToLower(a.Header.Get("Set-Cookie")); strings.Contains(strings.ReplaceAll(rest, " ", ""), ";domain=") {
			t.Errorf("%q kept its domain: %q", line, rest)
		}
	})
}

// A redirect to another host is kept byte for byte. One to the target is changed to the gateway's own.
func FuzzLocation(f *testing.F) {
	for _, seed := range []string{"http://app.internal/x?y#z", "//app.internal", "http://APP.internal:80/", "/x", "http://u@app.internal/", "::"} {
		f.Add(seed)
	}
	in := &http.Request{Host: "shop.example", URL: &url.URL{}}
	out := &http.Request{Host: "app.internal", URL: &url.URL{Host: "10.0.0.1:80"}}
	f.Fuzz(func(t *testing.T, location string) {
		a := &proxy.Response{In: in, Out: out, Header: http.Header{"Location": {location}}}
		a.FixLocation()
		got := a.Header.Get("Location")
		u, err := url.Parse(location)
		ours := err == nil && (strings.EqualFold(u.Host, "app.internal") || u.Host == "10.0.0.1:80")
		if !ours && got != location {
			t.Errorf("%q became %q", location, got)
		}
		if ours && !strings.HasPrefix(got, "http://shop.example") {
			t.Errorf("%q became %q", location, got)
		}
	})
}
