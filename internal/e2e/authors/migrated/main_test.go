package main

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/e2e/authors/peers"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// Names of rows of the table "What changes by default" in docs/from-httputil.md, and what another of its rows says.
const (
	bodyFilter    = "a filter changes a body" // which does not know its length beforehand
	xForwarded    = "X-Forwarded"
	otherClaims   = "Other claims"
	inConnection  = "Fields in Connection"
	pathAndQuery  = "Path and query"
	compression   = "Compression"
	contentType   = "Content-Type"
	textOfErrors  = "Text of errors"
	foreignOrigin = "WebSocket of another origin"
	otherUpgrades = "Other upgrades"
	handshake     = "Handshake"
	headerSize    = "Header size"
	trailers      = "Trailers of requests"
)

// pair is both gateways with the same backends.
type pair struct {
	before, after string
	app           *backend
}

func start(t *testing.T, more ...string) *pair {
	p := &pair{app: newBackend()}
	app, roots := peers.ServeTLS(t, p.app)
	pages := peers.Nginx(t, "default_type text/plain; etag on;", `
		location = /untyped { default_type ''; return 200 "<!DOCTYPE html>"; }
		location = /seen { return 200 "host=$http_host for=$http_x_forwarded_for proto=$http_x_forwarded_proto real=$http_x_real_ip"; }
		location / { root /usr/share/common-licenses; }`)
	args := append([]string{"-listen", "127.0.0.1:0", "-app", app.URL + "/base", "-roots", roots, "-pages", "http://" + pages}, more...)
	for _, g := range []struct {
		args []string
		addr *string
	}{{append(args, "-before"), &p.before}, {args, &p.after}} {
		*g.addr, _ = peers.Program(t, func(ctx context.Context, ready func(net.Addr)) error {
			return run(ctx, g.args, io.Discard, ready)
		})
	}
	t.Cleanup(func() { close(p.app.released) })
	return p
}

// Each exchange differs in what docs/from-httputil.md says, and in nothing else.
func TestDifferencesAreDocumented(t *testing.T) {
	p := start(t)
	const end = "Host: gateway.test\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		// differ has what differs, with the row that says so.
		differ map[string]string
	}{
		"a plain GET": {"GET /app/x HTTP/1.1\r\nAccept-Encoding: identity\r\nCookie: a=1\r\nX-Custom: 1\r\n" + end, nil},
		"no Accept-Encoding": {"GET /app/gzip HTTP/1.1\r\n" + end,
			map[string]string{"backend header Accept-Encoding": compression, "client header Content-Length": compression}},
		"gzip": {"GET /app/gzip HTTP/1.1\r\nAccept-Encoding: gzip\r\n" + end, nil},
		"path and query": {"GET /app/a%2Fb/%7e?a=1;b=2&sig=%zz&z=1&y=2 HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end,
			map[string]string{"backend uri": pathAndQuery}},
		"a POST with trailers": {"POST /app/x HTTP/1.1\r\nAccept-Encoding: identity\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n" + end +
			"7\r\ncontent\r\n0\r\nX-Sum: 42\r\n\r\n", map[string]string{"backend trailer X-Sum": trailers}},
		"a page with the banner":        {"GET /app/page HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, map[string]string{"client header Content-Length": bodyFilter}},
		"103 and trailers":              {"GET /app/early HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, nil},
		"a response that breaks off":    {"GET /app/broken HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, nil},
		"no Content-Type":               {"GET /untyped HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, map[string]string{"client header Content-Type": contentType}},
		"an error of ModifyResponse":    {"GET /app/internal HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, nil},
		"a long header":                 {"GET /app/huge-header HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, map[string]string{"client status": headerSize}},
		"forged fields, by Rewrite":     {"GET /app/x HTTP/1.1\r\nAccept-Encoding: identity\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Prefix: /x\r\nX-Real-IP: 192.0.2.1\r\n" + end, map[string]string{"backend header X-Forwarded-Prefix": otherClaims, "backend header X-Real-Ip": otherClaims}},
		"fields in Connection":          {"GET /app/x HTTP/1.1\r\nHost: gateway.test\r\nAccept-Encoding: identity\r\nAuthorization: Basic eDp5\r\nConnection: close, Authorization\r\n\r\n", map[string]string{"backend header Authorization": inConnection}},
		"a file of nginx":               {"GET /BSD HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, nil},
		"a range":                       {"GET /BSD HTTP/1.1\r\nAccept-Encoding: identity\r\nRange: bytes=10-19\r\n" + end, nil},
		"HEAD":                          {"HEAD /BSD HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, nil},
		"304":                           {"GET /BSD HTTP/1.1\r\nAccept-Encoding: identity\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n" + end, nil},
		"a file that is missing":        {"GET /missing HTTP/1.1\r\nAccept-Encoding: identity\r\n" + end, nil},
		"forged fields, by Director":    {"GET /seen HTTP/1.1\r\nAccept-Encoding: identity\r\nX-Forwarded-For: 192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\n" + end, map[string]string{"client body": xForwarded, "client header Content-Length": xForwarded}},
		"a WebSocket":                   {"GET /app/socket HTTP/1.1\r\n" + ws("http://gateway.test"), nil},
		"a WebSocket of another origin": {"GET /app/socket HTTP/1.1\r\n" + ws("http://evil.test"), map[string]string{"client status": foreignOrigin}},
		"another protocol": {"GET /app/other-protocol HTTP/1.1\r\nHost: gateway.test\r\nConnection: Upgrade\r\nUpgrade: other\r\nAccept-Encoding: identity\r\n\r\n",
			map[string]string{"client status": otherUpgrades, "backend header Connection": otherUpgrades, "backend header Upgrade": otherUpgrades}},
		"a handshake that is not valid": {"GET /app/bad-handshake HTTP/1.1\r\n" + ws("http://gateway.test"), map[string]string{"client status": handshake}},
	} {
		t.Run(name, func(t *testing.T) { p.compare(t, c.request, c.differ) })
	}
}

func ws(origin string) string {
	return "Host: gateway.test\r\nOrigin: " + origin + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAccept-Encoding: identity\r\n\r\n"
}

func (p *pair) compare(t *testing.T, request string, differ map[string]string) {
	clientBefore, backendBefore := p.send(t, p.before, request)
	clientAfter, backendAfter := p.send(t, p.after, request)
	found := differences("client", clientBefore, clientAfter)
	if len(backendBefore) > 0 && len(backendAfter) > 0 {
		found = append(differences("backend", backendBefore, backendAfter), found...)
	}
	for _, what := range found {
		if differ[what] == "" && !follows(what, differ) {
			side, name, _ := strings.Cut(what, " ")
			a, b := clientBefore, clientAfter
			if side == "backend" {
				a, b = backendBefore, backendAfter
			}
			t.Errorf("%s differs, which is not documented:\n%.200q\n%.200q", what, a[name], b[name])
		}
	}
	for what, row := range differ {
		if !slices.Contains(found, what) {
			t.Errorf("%s does not differ, though %q says so", what, row)
		}
	}
}

// follows reports whether a difference follows from another one: a response with another status has another header and content.
func follows(what string, differ map[string]string) bool {
	return strings.HasPrefix(what, "client ") && differ["client status"] != ""
}

// send returns what both sides see of a request; the backend's is empty if it has not got it.
func (p *pair) send(t *testing.T, gateway, request string) (client, backend seen) {
	client = exchange(t, gateway, request)
	select {
	case backend = <-p.app.last:
	default:
	}
	return client, backend
}

// What the ErrorHandler of the application responds with is the same; the one of pages has the default.
func TestErrors(t *testing.T) {
	t.Run("too late", func(t *testing.T) {
		p := start(t, "-wait", "200ms")
		p.compare(t, "GET /app/slow HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\nAccept-Encoding: identity\r\n\r\n", nil)
	})
	t.Run("unreachable", func(t *testing.T) {
		down := "http://" + wiretest.Unused(t)
		p := start(t, "-app", down, "-pages", down)
		p.compare(t, "GET /app/x HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n", nil)
		p.compare(t, "GET / HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n", map[string]string{
			"client body": textOfErrors, "client header Content-Type": textOfErrors,
			"client header X-Content-Type-Options": textOfErrors, "client header Content-Length": textOfErrors})
	})
}

// The rows that the tests name are in the page.
func TestRowsExist(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/from-httputil.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{bodyFilter, xForwarded, otherClaims, inConnection, pathAndQuery, compression, contentType, textOfErrors, foreignOrigin,
		otherUpgrades, handshake, headerSize, trailers} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/from-httputil.md has no row %q", row)
		}
	}
}

// A configuration that is wrong is an error that names it.
func TestConfiguration(t *testing.T) {
	for want, args := range map[string][]string{
		"-app":         {"-pages", "http://127.0.0.1:1"},
		"-pages":       {"-app", "http://127.0.0.1:1", "-pages", "ftp://x"},
		"-roots":       {"-app", "http://127.0.0.1:1", "-pages", "http://127.0.0.1:1", "-roots", "main.go"},
		"127.0.0.1:70": {"-app", "http://127.0.0.1:70000", "-pages", "http://127.0.0.1:1"},
	} {
		err := run(t.Context(), append(args, "-listen", "127.0.0.1:0"), io.Discard, func(net.Addr) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
