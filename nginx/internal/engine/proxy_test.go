package engine_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"testing"
	"time"
)

// echo responds with the request that it received.
func echo(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var lines []string
		for name, values := range r.Header {
			lines = append(lines, name+"="+strings.Join(values, ","))
		}
		sort.Strings(lines)
		if to := r.Header.Get("X-Redirect"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
		w.Header().Set("Server", "upstream")
		w.Header().Set("X-Accel-Expires", "5")
		w.Header().Set("X-Seen", "1")
		fmt.Fprintf(w, "%s %s %s [%s] %s", r.Method, r.RequestURI, r.Host, strings.Join(lines, " "), body)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestProxyPassPath(t *testing.T) {
	up := echo(t)
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		upstream up { server UP; }
		map $arg_to $to { default up; literal UP; name nosuch.test; bad "x y"; }
		server {
			location / { proxy_pass http://up; }
			location /uri/ { proxy_pass http://up/new/; }
			location /pre { proxy_pass http://up/new; }
			location = /exact { proxy_pass http://up/other; }
			location ~ ^/re { proxy_pass http://up; }
			location /var/ { proxy_pass http://$to; }
			location /varuri/ { proxy_pass http://$to/base$uri?z=1; }
			location /internal { error_page 404 =200 /uri/a%20b?q; return 404; }
			location /internal-raw { error_page 404 = "/x y?q=1"; return 404; }
		}
	}`, "UP", up)})
	for target, want := range map[string]string{
		"/a%20b//c/../%2e?x=%20&&y": "/a%20b//c/../%2e?x=%20&&y", // without a URI the client's bytes
		"/a?":                       "/a?",
		"/%e4%2F":                   "/%e4%2F",
		"//two//slashes":            "//two//slashes",
		"/re%20x?y":                 "/re%20x?y",
		"/uri/a%20b?x":              "/new/a%20b?x",
		"/uri//a/../b%3F%25":        "/new/b%3F%25",
		"/uri/%e4":                  "/new/%E4",
		"/uri/":                     "/new/",
		"/pre":                      "/new",
		"/prefix?a":                 "/newfix?a",
		"/exact?a=b":                "/other?a=b",
		"/var/a%20b?c":              "/var/a%20b?c",
		"/varuri/a%20b?c":           "/base/varuri/a%20b?z=1",
		"/varuri/a%0d%0aX:y":        "/base/varuri/a%0D%0AX:y?z=1", // and no second header field
		"/var/x?to=literal":         "/var/x?to=literal",
		"/internal":                 "/new/a%2520b?q",
		"/internal-raw":             "/x%20y?q=1",
	} {
		got := s.get(target)
		words := strings.SplitN(got.body, " ", 3)
		if len(words) < 2 {
			t.Errorf("%s: %d %q", target, got.StatusCode, got.body)
			continue
		}
		equal(t, target, words[1], want)
	}
	equal(t, "a name without a resolver", s.get("/var/x?to=name").StatusCode, http.StatusBadGateway)
	equal(t, "no address", s.get("/var/x?to=bad").StatusCode, http.StatusBadGateway)
}

func TestProxySetHeader(t *testing.T) {
	up := echo(t)
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		proxy_set_header X-Outer outer;
		server {
			location / { proxy_pass http://UP; }
			location /own { proxy_pass http://UP; proxy_set_header Host $host; proxy_set_header X-Own "$remote_addr $uri";
				proxy_set_header Accept ""; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
				proxy_set_header Content-Length 99; proxy_set_header Transfer-Encoding chunked; }
			location /close { proxy_pass http://UP; proxy_set_header Connection close; }
		}
	}`, "UP", up)})
	for _, tt := range []struct{ target, fields, want string }{
		{"/", "Accept: a", "GET / " + up + " [Accept=a X-Outer=outer] "},
		{"/", "X-Outer: client", "GET / " + up + " [X-Outer=outer] "},
		{"/", "Connection: X-Real-IP\nX-Real-IP: 1", "GET / " + up + " [X-Outer=outer] "},
		{"/", "Foo_Bar: 1", "GET / " + up + " [X-Outer=outer] "},
		{"/", "X-Forwarded-For: 1.2.3.4\nX-Forwarded-Proto: https\nForwarded: for=x", "GET / " + up +
			" [Forwarded=for=x X-Forwarded-For=1.2.3.4 X-Forwarded-Proto=https X-Outer=outer] "},
		{"/", "X-Forwarded-Port: 1\nX-Original-URL: /a\nX-Client-IP: b", "GET / " + up + " [X-Client-Ip=b X-Forwarded-Port=1 X-Original-Url=/a X-Outer=outer] "},
		{"/", "Te: trailers\nKeep-Alive: 5\nUpgrade: websocket", "GET / " + up + " [X-Outer=outer] "},
		{"/own", "Accept: a\nX-Forwarded-For: 1.2.3.4", "GET /own localhost [X-Forwarded-For=1.2.3.4, 127.0.0.1 X-Own=127.0.0.1 /own] "},
		{"/own", "Connection: X-Forwarded-For\nX-Forwarded-For: 6.6.6.6", "GET /own localhost [X-Forwarded-For=127.0.0.1 X-Own=127.0.0.1 /own] "},
		{"/close", "", "GET /close " + up + " [Connection=close] "},
	} {
		equal(t, tt.target+" "+tt.fields, s.get(tt.target, strings.Split(tt.fields, "\n")...).body, tt.want)
	}
}

func TestProxyResponseHeader(t *testing.T) {
	up := echo(t)
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		upstream up { server UP; }
		server {
			location / { proxy_pass http://up; }
			location /show { proxy_pass http://up; proxy_hide_header X-Seen; proxy_pass_header X-Accel-Expires; proxy_pass_header Server; }
			location /uri/ { proxy_pass http://up/new/; }
			location /off { proxy_pass http://up; proxy_redirect off; }
			location /pairs { proxy_pass http://up; proxy_redirect http://one/ /1/; proxy_redirect ~^http://(\w+)/(.*) https://$host/$1/$2; }
		}
	}`, "UP", up)})
	plain := s.get("/")
	equal(t, "Server", plain.Header.Get("Server"), "nginx/1.31.5")
	equal(t, "X-Accel-Expires", plain.Header.Get("X-Accel-Expires"), "")
	equal(t, "X-Seen", plain.Header.Get("X-Seen"), "1")
	show := s.get("/show")
	equal(t, "shown X-Accel-Expires", show.Header.Get("X-Accel-Expires"), "5")
	equal(t, "hidden X-Seen", show.Header.Get("X-Seen"), "")
	here := "http://localhost:" + port(s.first)
	for _, tt := range []struct{ target, from, want string }{
		{"/", "http://up/a", here + "/a"},
		{"/", "http://other/a", "http://other/a"},
		{"/", "/a", "/a"},
		{"/uri/", "http://up/new/a", here + "/uri/a"},
		{"/uri/", "http://up/a", "http://up/a"},
		{"/off", "http://up/a", "http://up/a"},
		{"/pairs", "http://one/a", here + "/1/a"},
		{"/pairs", "http://two/a", "https://localhost/two/a"},
	} {
		equal(t, tt.target+" "+tt.from, s.get(tt.target, "X-Redirect: "+tt.from).Header.Get("Location"), tt.want)
	}
}

func TestBodyLimit(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`
		location / { client_max_body_size 4; proxy_pass http://UP; }
		location /any { client_max_body_size 0; proxy_pass http://UP; }`, "UP", echo(t))))
	post := func(target, framing, body string) response {
		return s.send("POST " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + framing + "\r\n\r\n" + body)
	}
	equal(t, "small", post("/", "Content-Length: 4", "1234").StatusCode, 200)
	equal(t, "large", post("/", "Content-Length: 5", "12345").StatusCode, 413)
	equal(t, "large page", post("/", "Content-Length: 5", "12345").body, builtin("413 Request Entity Too Large"))
	equal(t, "small chunks", post("/", "Transfer-Encoding: chunked", "4\r\n1234\r\n0\r\n\r\n").StatusCode, 200)
	equal(t, "large chunks", post("/", "Transfer-Encoding: chunked", "5\r\n12345\r\n0\r\n\r\n").StatusCode, 413)
	equal(t, "no limit", post("/any", "Content-Length: 5", "12345").StatusCode, 200)
}

// raw is an upstream that sends text on each connection and closes it; with an empty text the
// connection is kept open until the test ends.
func raw(t *testing.T, text string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { close(done); ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				io.WriteString(conn, text)
				if text == "" || strings.HasSuffix(text, "stall") {
					<-done
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func TestBadUpstreams(t *testing.T) {
	tests := []struct {
		about, response string
		want            int // 0: the response breaks off
	}{
		{"closes", "\r", 502},
		{"garbage", "garbage\r\n\r\n", 502},
		{"status 099", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", 502},
		{"huge header", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", 502},
		{"stalls", "", 504},
		{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", 0},
		{"stalls in its body", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nstall", 0},
		{"fine", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			s := serve(t, server("location / { proxy_read_timeout 50ms; proxy_pass http://"+raw(t, tt.response)+"; }"))
			conn, err := net.Dial("tcp", s.first)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			_, bodyErr := io.ReadAll(resp.Body)
			if tt.want == 0 {
				if bodyErr != io.ErrUnexpectedEOF {
					t.Errorf("the body ended with %v", bodyErr)
				}
				return
			}
			equal(t, "status", resp.StatusCode, tt.want)
			equal(t, "end of the body", bodyErr, nil)
		})
	}
}

// A target that refuses connections is skipped, and the status is 502 only if all refuse them.
func TestNextTarget(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		log_format t "$upstream_addr $upstream_status"; access_log t.log t;
		upstream a { server 127.0.0.1:1; server UP backup; }
		upstream b { server 127.0.0.1:1; server 127.0.0.1:2; }
		upstream c { server UP down; }
		server {
			location /a { proxy_pass http://a; }
			location /b { proxy_pass http://b; }
			location /c { proxy_pass http://c; }
		}
	}`, "UP", echo(t))})
	equal(t, "backup", s.get("/a").StatusCode, 200)
	b := s.get("/b")
	equal(t, "all refuse", b.StatusCode, 502)
	equal(t, "page", b.body, builtin("502 Bad Gateway"))
	equal(t, "all down", s.get("/c").StatusCode, 502)
	lines := strings.Split(strings.TrimSpace(s.file("t.log")), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "127.0.0.1:1, ") || !strings.HasSuffix(lines[0], " 502, 200") ||
		!strings.HasSuffix(lines[1], " 502, 502") || lines[2] != "c 502" {
		t.Errorf("logged %q", lines)
	}
}

// Close closes the idle connections.
func TestCloseReleasesIdleConnections(t *testing.T) {
	closed := make(chan struct{})
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	up.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	up.Start()
	defer up.Close()
	s := serve(t, server("location / { proxy_pass http://"+up.Listener.Addr().String()+"; }"))
	s.get("/")
	select {
	case <-closed:
		t.Fatal("the connection was not kept")
	default:
	}
	if err := s.engine.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the connection is still open")
	}
}
