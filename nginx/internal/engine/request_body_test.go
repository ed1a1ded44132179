package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// filed is an upstream that responds with the content of the file that it is told of, and the length of what it got.
func filed(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		content, err := os.ReadFile(r.Header.Get("X-File"))
		fmt.Fprintf(w, "%d in %d, in memory %s, in a file %s %v", len(got), r.ContentLength, r.Header.Get("X-Body"), content, err == nil)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A body is held in memory or in a file of client_body_temp_path, which exists as long as client_body_in_file_only says. The
// upstream gets it with its length.
func TestRequestBodyFiles(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`client_body_temp_path bodies; client_body_buffer_size 8; proxy_set_header X-File $request_body_file; proxy_set_header X-Body $request_body;
		location / { proxy_pass http://UP; }
		location /clean { client_body_in_file_only clean; proxy_pass http://UP; }
		location /on { client_body_in_file_only on; proxy_pass http://UP; }
		location /limited { client_body_in_file_only on; client_max_body_size 4; proxy_pass http://UP; }`, "UP", filed(t))))
	dir := filepath.Join(s.dir, "bodies")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there before it has a file: %v", err)
	}
	for _, test := range []struct {
		path, header, body, want string
		left                     int
	}{
		{"/", "Transfer-Encoding: chunked", "5\r\nshort\r\n0\r\n\r\n", "5 in 5, in memory short, in a file  false", 0},
		{"/", "Transfer-Encoding: chunked", "9\r\nvery long\r\n0\r\n\r\n", "9 in 9, in memory , in a file  false", 0},
		{"/", "Content-Length: 0", "", "0 in 0, in memory , in a file  false", 0},
		{"/clean", "Content-Length: 5", "short", "5 in 5, in memory , in a file short true", 0},
		{"/clean", "Content-Length: 0", "", "0 in 0, in memory , in a file  true", 0},
		{"/on", "Content-Length: 9", "very long", "9 in 9, in memory , in a file very long true", 1},
		{"/on", "Transfer-Encoding: chunked", "5\r\nshort\r\n0\r\n\r\n", "5 in 5, in memory , in a file short true", 2},
		{"/on", "X-No: body", "", "0 in 0, in memory , in a file  false", 2},
		{"/on", "Transfer-Encoding: chunked", "5\r\nshortXX", builtin("400 Bad Request"), 2},
		{"/limited", "Transfer-Encoding: chunked", "5\r\nshort\r\n0\r\n\r\n", builtin("413 Request Entity Too Large"), 2},
	} {
		got := s.send("POST " + test.path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + test.header + "\r\n\r\n" + test.body)
		equal(t, test.path+" with "+test.header, got.body, test.want)
		if files, _ := os.ReadDir(dir); len(files) != test.left {
			t.Errorf("%s with %s leaves %d files, want %d", test.path, test.header, len(files), test.left)
		}
	}
	refusedValue := `invalid value "maybe"`
	if _, err := load(t, server(`client_body_in_file_only maybe;`)); err == nil || !strings.Contains(err.Error(), refusedValue) {
		t.Errorf("error %v, want %s", err, refusedValue)
	}
}

// The upstream sees nothing of a request whose body is broken or too large; its 100 (Continue) is sent when the body is read.
func TestRequestBodyFirst(t *testing.T) {
	asked := make(chan string, 10)
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		asked <- p.Header()
		p.Send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	s := serve(t, server(`client_max_body_size 5; location / { proxy_pass http://`+up+`; }`))
	for _, test := range []struct{ name, header, body, continued, want string }{
		{"known", "Content-Length: 5", "hello", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 204 "},
		{"of unknown length", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 204 "},
		{"empty", "Content-Length: 0", "", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 204 "},
		{"too long", "Content-Length: 6", "", "", "HTTP/1.1 413 "},
		{"too long, of unknown length", "Transfer-Encoding: chunked", "6\r\nhello!\r\n0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 413 "},
		{"broken", "Transfer-Encoding: chunked", "5\r\nhello!!", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 400 "},
	} {
		p := wiretest.Dial(t, s.first)
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n" + test.header + "\r\n\r\n")
		p.Receive(test.continued)
		p.Send(test.body)
		if got := p.Header(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q", test.name, got)
		}
		p.Close()
		if test.want == "HTTP/1.1 204 " {
			if header := <-asked; strings.Contains(header, "Expect") || strings.Contains(header, "chunked") || !strings.Contains(header, "\r\nContent-Length: ") {
				t.Errorf("%s: the upstream got %q", test.name, header)
			}
		} else if len(asked) > 0 {
			t.Errorf("%s: the upstream got %q", test.name, <-asked)
		}
	}
}

// With "proxy_request_buffering off" the upstream sees a request at once, with what was received of its body in the same piece.
func TestStreamedRequestBody(t *testing.T) {
	pieces := make(chan string)
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		for buf := make([]byte, 4<<10); ; {
			n, err := p.Conn.Read(buf)
			pieces <- string(buf[:n])
			if got := string(buf[:n]); err != nil || strings.HasSuffix(got, "world") || strings.HasSuffix(got, "\r\n0\r\n\r\n") {
				break
			}
		}
		p.Send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	s := serve(t, server(`proxy_request_buffering off; location / { proxy_pass http://`+up+`; }`))
	for _, test := range []struct{ header, first, second, wantFirst, wantSecond string }{
		{"Content-Length: 10", "hello", "world", "hello", "world"},
		{"Content-Length: 10", "", "helloworld", "", "helloworld"},
		{"Transfer-Encoding: chunked", "3\r\nhel\r\n2\r\nlo\r\n", "5\r\nworld\r\n0\r\n\r\n", "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"},
		{"Transfer-Encoding: chunked", "a\r\nhello", "world\r\n0\r\n\r\n", "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"},
	} {
		p := wiretest.Dial(t, s.first)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n" + test.header + "\r\n\r\n" + test.first)
		header, body, _ := strings.Cut(<-pieces, "\r\n\r\n")
		if !strings.HasPrefix(header, "GET / HTTP/1.1\r\n") || body != test.wantFirst {
			t.Errorf("%s: the first piece is %q with %q, want %q", test.header, header, body, test.wantFirst)
		}
		p.Send(test.second)
		if got := <-pieces; got != test.wantSecond {
			t.Errorf("%s: the second piece is %q, want %q", test.header, got, test.wantSecond)
		}
		p.Status(http.StatusNoContent)
		p.Close()
	}
}

// A mirror that copies bodies has them read as a whole, with "proxy_request_buffering off" too. A body that is sent while it is received
// is in no file of client_body_in_file_only.
func TestMirroredAndStreamedBodies(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`client_body_temp_path bodies; proxy_request_buffering off; client_body_in_file_only on;
		location / { proxy_pass http://UP; add_header X-Held "$request_body" always; }
		location /mirrored { client_body_in_file_only off; mirror /copy; proxy_pass http://UP; add_header X-Held "$request_body" always; }
		location /copy { return 204; }`, "UP", filed(t))))
	got := s.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nshort")
	equal(t, "streamed", got.Header.Get("X-Held"), "short")
	if _, err := os.Stat(filepath.Join(s.dir, "bodies")); !os.IsNotExist(err) {
		t.Errorf("there is a file of a streamed body: %v", err)
	}
	p := wiretest.Dial(t, s.first)
	p.Send("POST /mirrored HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	p.Receive("HTTP/1.1 100 Continue\r\n\r\n") // so that the body is not there already
	p.Send("short")
	if header := p.Header(); !strings.Contains(header, "\r\nX-Held: short\r\n") {
		t.Errorf("mirrored: %q", header)
	}
}

// The header's length is that of the bytes that were received, and what came with the request before is pipelined.
func TestReceivedVariables(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http { log_format l "$request_length $pipe"; access_log l.log l; server { location / { return 200; } } }`})
	first, second := "GET / HTTP/1.1\nHost:  a\r\n\r\n", "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
	p := wiretest.Dial(t, s.first)
	p.Send(first)
	p.Status(200)
	p.Send(first + second)
	p.Status(200)
	p.Status(200)
	p.Ended()
	equal(t, "the log", s.file("l.log"), fmt.Sprintf("%d .\n%d .\n%d p\n", len(first), len(first), len(second)))
}

// A program gets a length of a chunked body that was empty, too.
func TestEmptyChunkedLength(t *testing.T) {
	var got string
	up := program(t, ",", func(text string) string {
		got = text
		return "Status: 204 None\r\n\r\n"
	})
	s := serve(t, server(`location / { scgi_pass `+up+`; scgi_param LENGTH $content_length; }`))
	s.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if !strings.Contains(got, "LENGTH\x000\x00") {
		t.Errorf("sent %q", got)
	}
}

// A body that can't be written to a disk is an incident, and no client's doing.
func TestBodyDiskFailure(t *testing.T) {
	s := serve(t, with(server(`client_body_buffer_size 8; client_body_temp_path file/sub; location / { proxy_pass http://127.0.0.1:1; }`), "file", ""))
	body := strings.Repeat("x", 100)
	got := s.send("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\n" + body)
	equal(t, "status", got.StatusCode, 500)
	if log := s.errors.String(); !strings.Contains(log, "[crit]") || !strings.Contains(log, "body on disk") || !strings.Contains(log, "while reading client request body") {
		t.Errorf("the error log has %q", log)
	}
}
