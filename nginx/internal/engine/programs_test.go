package engine_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// fastCGI serves FastCGI on a unix socket.
func fastCGI(t *testing.T, serve http.HandlerFunc) (address string) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = fcgi.Serve(l, serve) }()
	t.Cleanup(func() { l.Close(); <-done })
	return "unix:" + path
}

const params = `fastcgi_param REQUEST_METHOD $request_method; fastcgi_param SERVER_PROTOCOL $server_protocol; fastcgi_param REQUEST_URI $request_uri; `

func TestFastCGI(t *testing.T) {
	up := fastCGI(t, func(w http.ResponseWriter, r *http.Request) {
		env := fcgi.ProcessEnv(r)
		switch r.URL.Path {
		case "/accel":
			w.Header().Set("X-Accel-Redirect", "/other")
		case "/missing":
			w.WriteHeader(404)
		case "/hidden":
			w.Header().Set("X-Secret", "1")
			w.Header().Set("Server", "program")
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s|%s|%s|%s", r.Method, env["SCRIPT_FILENAME"], env["INFO"], r.Header.Get("X-A"), r.Header.Get("Proxy"), body)
	})
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http { `+params+`
		fastcgi_param SCRIPT_FILENAME /srv$fastcgi_script_name; fastcgi_param INFO $fastcgi_path_info if_not_empty; fastcgi_index i.php;
		fastcgi_split_path_info ^(.+\.php)(/.*)$; fastcgi_hide_header X-Secret;
		upstream both { server 127.0.0.1:1; server UP backup; }
		server { location / { fastcgi_pass UP; }
			location /both { fastcgi_pass both; fastcgi_keep_conn on; }
			location /var { set $to UP; fastcgi_pass $to; }
			location /missing { fastcgi_pass UP; fastcgi_intercept_errors on; error_page 404 /page; }
			location /page { return 200 page; }
			location /other { return 200 other; } } }`, "UP", up)})
	for path, want := range map[string]string{
		"/":            "GET /srv/i.php |b||",
		"/a.php/b?c":   "GET /srv/a.php /b|b||",
		"/both":        "GET /srv/both |b||",
		"/var":         "GET /srv/var |b||",
		"/accel":       "other",
		"/missing":     "page",
		"/hidden":      "GET /srv/hidden |b||",
		"/w%20x/a.php": "GET /srv/w x/a.php |b||",
	} {
		got := s.get(path, "X-A: b", "Proxy: http://evil")
		if got.body != want {
			t.Errorf("%s: status %d, body %q, want %q", path, got.StatusCode, got.body, want)
		}
		if got.Header["X-Secret"] != nil || path == "/hidden" && got.Header.Get("Server") != "program" {
			t.Errorf("%s: header %v", path, got.Header)
		}
	}
	for name, raw := range map[string]string{
		"a length": "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
		"chunked":  "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		if got := s.send(raw); !strings.HasSuffix(got.body, "|hello") {
			t.Errorf("%s: %q", name, got.body)
		}
	}
}

// program serves one request a connection with what respond returns for what was sent until want.
func program(t *testing.T, until string, respond func(got string) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var got strings.Builder
			for b := bufio.NewReader(c); !strings.HasSuffix(got.String(), until); {
				one, err := b.ReadByte()
				if err != nil {
					break
				}
				got.WriteByte(one)
			}
			io.WriteString(c, respond(got.String()))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestSCGI(t *testing.T) {
	var got string
	up := program(t, "hello", func(text string) string {
		got = text
		return "Status: 201 Made\r\nX-B: c\r\n\r\ndone"
	})
	s := serve(t, map[string]string{"nginx.conf": `events {} http { server { location / { scgi_pass ` + up + `; scgi_param SCGI 1; scgi_param EMPTY "" if_not_empty; scgi_param HTTP_EMPTY ""; scgi_request_buffering off; } } }`})
	for _, raw := range []string{
		"POST / HTTP/1.1\r\nHost: H:81\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: H:81\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	} {
		resp := s.send(raw)
		if resp.StatusCode != 201 || resp.Header.Get("X-B") != "c" || resp.Header.Get("Server") != "nginx/1.31.5" || resp.body != "done" {
			t.Errorf("status %d, header %v, body %q", resp.StatusCode, resp.Header, resp.body)
		}
		length, rest, _ := strings.Cut(got, ":")
		if fmt.Sprint(len(rest)-len(",hello")) != length || !strings.HasPrefix(rest, "CONTENT_LENGTH\x005\x00SCGI\x001\x00HTTP_HOST\x00h:81\x00HTTP_X_A\x00b\x00") ||
			strings.Contains(rest, "EMPTY") || !strings.HasSuffix(rest, "\x00,hello") {
			t.Errorf("sent %q", got)
		}
	}
}

// Trailers are not sent to programs, and keep no length from them, also where the body was read for another upstream.
func TestProgramsGetNoTrailers(t *testing.T) {
	var got string
	up := program(t, "hello", func(text string) string {
		got = text
		return "Status: 200 OK\r\n\r\ndone"
	})
	s := serve(t, map[string]string{"nginx.conf": `events {} http { server { location / { scgi_pass ` + up + `; scgi_param SENT $content_length; }
		location /after { error_page 502 = @program; proxy_pass http://` + wiretest.Unused(t) + `; } location @program { scgi_pass ` + up + `; } location /u { uwsgi_pass ` + up + `; uwsgi_param CONTENT_LENGTH $content_length; } } }`})
	for target, want := range map[string]string{"/": "CONTENT_LENGTH\x005\x00SENT\x005\x00", "/u": "\x0e\x00CONTENT_LENGTH\x01\x005"} {
		resp := s.send("POST " + target + " HTTP/1.1\r\nHost: h\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: t\r\n\r\n")
		if resp.body != "done" || !strings.Contains(got, want) || !strings.HasSuffix(got, "hello") || strings.Contains(got, "X-T: t") {
			t.Errorf("%s: sent %q", target, got)
		}
	}
	if resp := s.send("POST /after HTTP/1.1\r\nHost: h\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: t\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("after a failure: %s", resp.Status)
	}
}

func TestUWSGI(t *testing.T) {
	var got string
	up := program(t, "text", func(text string) string {
		got = text
		return "HTTP/1.1 418 Teapot\r\nContent-Length: 4\r\n\r\nshortandmore"
	})
	s := serve(t, map[string]string{"nginx.conf": `events {} http { server { location / { uwsgi_pass uwsgi://` + up + `; uwsgi_param A bc; uwsgi_modifier1 5; uwsgi_modifier2 6;
		uwsgi_pass_request_headers off; uwsgi_string text; } } }`})
	if resp := s.get("/"); resp.StatusCode != 418 || resp.body != "shor" {
		t.Errorf("status %d, body %q", resp.StatusCode, resp.body)
	}
	if want := "\x05\x1d\x00\x06\x01\x00A\x02\x00bc\t\x00HTTP_HOST\t\x00localhosttext"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}
