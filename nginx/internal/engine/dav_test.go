package engine_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const davConf = `root html; absolute_redirect off; dav_methods PUT DELETE MKCOL COPY MOVE; client_max_body_size 10;
	location /full/ { create_full_put_path on; dav_access group:r all:r; }
	location /deep/ { min_delete_depth 3; }
	location /only/ { dav_methods PUT; }
	location /off/ { dav_methods off; }
	location /alias/ { alias html/other/; }
	location /climbs/ { root html/$arg_dir; }
	location = /gif { empty_gif; }`

// write sends a request with a body and further fields, and returns the status and Location.
func (s *site) write(method, target, body string, fields ...string) string {
	s.t.Helper()
	raw := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	if body != "" || method == "PUT" {
		raw += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	for _, f := range fields {
		raw += f + "\r\n"
	}
	got := s.send(raw + "\r\n" + body)
	return strings.TrimSpace(strconv.Itoa(got.StatusCode) + " " + got.Header.Get("Location"))
}

func TestDAV(t *testing.T) {
	s := serve(t, with(server(davConf), "html/a", "A", "html/dir/b", "B", "html/dir/sub/c", "C", "html/deep/x/y", "", "html/other/o", "O", "html/off/f", "", "html/only/f", ""))
	outside := t.TempDir()
	for name, target := range map[string]string{"link": outside, "dir/link": outside, "file": filepath.Join(outside, "f")} {
		if err := os.Symlink(target, filepath.Join(s.dir, "html", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		method, target, body, fields, want string
	}{
		{"PUT", "/new%20x", "text", "", "201 /new%20x"},
		{"PUT", "/new%20x", "", "", "204"},
		{"PUT", "/file", "text", "", "204"}, // the link is replaced
		{"PUT", "/full/p/q", "text", "Date: Sun, 06 Nov 1994 08:49:37 GMT", "201 /full/p/q"},
		{"PUT", "/none/q", "text", "", "500"},
		{"PUT", "/dir", "text", "", "409"},
		{"PUT", "/dir/", "text", "", "409"},
		{"PUT", "/x", "text", "Content-Range: bytes 0-3/4", "501"},
		{"PUT", "/x", "more than ten bytes", "", "413"},
		{"PUT", "/climbs/x?dir=../..", "text", "", "403"},
		{"PUT", "/off/f", "text", "", "405"},
		{"MKCOL", "/col/", "", "", "201 /col/"},
		{"MKCOL", "/col/", "", "", "405"},
		{"MKCOL", "/col2", "", "", "409"},
		{"MKCOL", "/none/col/", "", "", "409"},
		{"MKCOL", "/col3/", "body", "", "415"},
		{"MKCOL", "/only/x/", "", "", "405"},
		{"COPY", "/a", "", "Destination: /a2", "204"},
		{"COPY", "/a", "", "Destination: http://localhost:80/a3", "204"},
		{"COPY", "/a", "", "Destination: http://other/a3", "400"},
		{"COPY", "/a", "", "Destination: http://localhost.evil/a3", "400"},
		{"COPY", "/a", "", "Destination: https://localhost/a3", "400"},
		{"COPY", "/a", "", "Destination: http://localhost", "400"},
		{"COPY", "/a", "", "Destination: /../../x", "400"},
		{"COPY", "/a", "", "Destination: /%2e%2e/x", "400"},
		{"COPY", "/a", "", "", "400"},
		{"COPY", "/a", "", "Destination: /a", "403"},
		{"COPY", "/a", "", "Destination: /a4/", "409"},
		{"COPY", "/a", "", "Destination: /dir", "409"},
		{"COPY", "/none", "", "Destination: /x", "404"},
		{"COPY", "/a", "", "Destination: /a2\nOverwrite: F", "412"},
		{"COPY", "/a", "", "Destination: /a2\nOverwrite: x", "400"},
		{"COPY", "/a", "", "Destination: /a2\nDepth: 1", "400"},
		{"COPY", "/a", "", "Destination: /a2\nDepth: 0", "204"},
		{"COPY", "/a", "body", "Destination: /a2", "415"},
		{"COPY", "/dir/", "", "Destination: /dir/in/", "403"},
		{"COPY", "/dir/", "", "Destination: /copy/", "201"},
		{"COPY", "/dir/", "", "Destination: /copy/", "201"}, // over it
		{"COPY", "/alias/o", "", "Destination: /elsewhere", "400"},
		{"COPY", "/alias/o", "", "Destination: /alias/p", "204"},
		{"MOVE", "/copy/", "", "Destination: /moved/", "201"},
		{"MOVE", "/a3", "", "Destination: /new/a3", "204"},
		{"MOVE", "/a2", "", "Destination: /a2b\nDepth: 0", "400"},
		{"DELETE", "/a2", "", "Depth: 1", "400"},
		{"DELETE", "/a2", "", "Depth: x", "400"},
		{"DELETE", "/a2", "body", "", "415"},
		{"DELETE", "/a2", "", "", "204"},
		{"DELETE", "/a2", "", "", "404"},
		{"DELETE", "/a/x", "", "", "409"},
		{"DELETE", "/moved", "", "", "409"},
		{"DELETE", "/moved/", "", "Depth: 0", "400"},
		{"DELETE", "/dir/", "", "", "204"},
		{"DELETE", "/deep/x/", "", "", "409"},
		{"DELETE", "/deep/x/y", "", "", "204"},
		{"DELETE", "/link", "", "", "204"},
	} {
		var fields []string
		if step.fields != "" {
			fields = strings.Split(step.fields, "\n")
		}
		equal(t, step.method+" "+step.target+" "+step.fields, s.write(step.method, step.target, step.body, fields...), step.want)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(data) != "outside" {
		t.Errorf("what a link leads to is %q, %v", data, err)
	}
	for name, want := range map[string]string{"new x": "", "file": "text", "full/p/q": "text", "moved/sub/c": "C", "new/a3": "A", "other/p": "O"} {
		equal(t, name, s.file("html/"+name), want)
	}
	info, err := os.Stat(filepath.Join(s.dir, "html/full/p/q"))
	if err != nil || info.Mode() != 0o644 || info.ModTime().Unix() != 784111777 {
		t.Errorf("%v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "html/.put-*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// A body that breaks off, or is too long, leaves the file as it was.
func TestPutBreaksOff(t *testing.T) {
	s := serve(t, with(server(davConf), "html/a", "A"))
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nnew")
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.ReadAll(conn)
	equal(t, "the file", s.file("html/a"), "A")
	chunked := s.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n012345678901\r\n0\r\n\r\n")
	equal(t, "too long", chunked.StatusCode, 413)
	equal(t, "the file", s.file("html/a"), "A")
	conn2, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn2.Close()
	_, _ = io.WriteString(conn2, "PUT /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnew\r\n0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn2), nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "chunked", resp.StatusCode, 204)
	equal(t, "the file", s.file("html/a"), "new")
}

func TestDAVErrors(t *testing.T) {
	for text, want := range map[string]string{
		"dav_methods GET;":     `invalid value "GET" in `,
		"dav_access user:w;":   `invalid value "user:w" in `,
		"dav_access other:rw;": `invalid value "other:rw" in `,
	} {
		if _, err := load(t, server(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestEmptyGIF(t *testing.T) {
	s := serve(t, server(davConf))
	got := s.get("/gif")
	equal(t, "type", got.Header.Get("Content-Type"), "image/gif")
	if !strings.HasPrefix(got.body, "GIF89a") || len(got.body) != 43 {
		t.Errorf("%q", got.body)
	}
	modified := got.Header.Get("Last-Modified")
	equal(t, "since", s.get("/gif", "If-Modified-Since: "+modified).StatusCode, 304)
	equal(t, "HEAD", s.request("HEAD", "/gif").Header.Get("Content-Length"), "43")
	equal(t, "POST", s.request("POST", "/gif").StatusCode, 405)
}

func TestRandomIndex(t *testing.T) {
	s := serve(t, with(server(`root html; location / { random_index on; } location /off/ { }`), "html/x/a", "A", "html/x/b", "B", "html/x/.hidden", "H", "html/x/dir/f", "F", "html/empty/dir/f", "F", "html/off/index.html", "index"))
	seen := map[string]bool{}
	for range 100 {
		seen[s.get("/x/").body] = true
	}
	if len(seen) != 2 || !seen["A"] || !seen["B"] {
		t.Errorf("%v", seen)
	}
	equal(t, "no file", s.get("/empty/").StatusCode, 403)
	equal(t, "no folder", s.get("/none/").StatusCode, 404)
	equal(t, "off", s.get("/off/").body, "index")
}

func TestBrowser(t *testing.T) {
	s := serve(t, server(`
		modern_browser msie 5.5; modern_browser gecko 1.0.0; modern_browser konqueror 3; modern_browser_value new; ancient_browser_value old;
		location / { return 200 "$modern_browser|$ancient_browser|$msie"; }
		location /unlisted { modern_browser unlisted; ancient_browser netscape4 Links; return 200 "$modern_browser|$ancient_browser"; }
		location /opera { modern_browser opera 8; return 200 "$modern_browser"; }`))
	for _, tt := range []struct{ target, agent, want string }{
		{"/", "", "|old|"},
		{"/", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", "new||1"},
		{"/", "Mozilla/4.0 (compatible; MSIE 5.01; Windows NT 5.1)", "|old|1"},
		{"/", "Mozilla/4.0 (compatible; MSIE 6.0; X11) Opera 7.50", "|old|"},
		{"/", "Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.0.0) Gecko/20020610", "new||"},
		{"/", "Mozilla/5.0 (X11; U; Linux i686; en-US; rv:0.9.9) Gecko/20020610", "|old|"},
		{"/", "Mozilla/5.0 (compatible; Konqueror/3.1; Linux)", "new||"},
		{"/", "curl/8", "|old|"},
		{"/unlisted", "", "new|"},
		{"/unlisted", "curl/8", "new|"},
		{"/unlisted", "Links (2.1)", "|old"},
		{"/unlisted", "Mozilla/4.72 [en] (X11)", "|old"},
		{"/opera", "Opera/8.0 (Windows NT 5.1; U; ru)", "new"},
		{"/opera", "Opera/7.5 (Windows NT 5.1; U; ru)", ""},
	} {
		equal(t, tt.target+" "+tt.agent, s.get(tt.target, "User-Agent: "+tt.agent).body, tt.want)
	}
	for text, want := range map[string]string{"lynx 1": `unknown browser name "lynx" in `, "msie 1a": `invalid browser version "1a" in `} {
		if _, err := load(t, server("modern_browser "+text+";")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A ".." that root or alias has is the configuration's: files are written where they are read.
func TestDAVBelowARootWithDots(t *testing.T) {
	s := serve(t, with(server(`absolute_redirect off; dav_methods PUT DELETE MKCOL COPY MOVE; root html/a/../w;
		location /alias/ { alias html/a/../w/; } location /part { alias html/a/../w/p; }
		location /stored { proxy_store on; proxy_pass http://`+raw(t, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\ns")+`; }`), "html/a/f", "", "html/w/f", "w"))
	for _, step := range []struct{ method, target, field, want string }{
		{"GET", "/f", "", "200"},
		{"PUT", "/g", "", "201 /g"},
		{"PUT", "/alias/h", "", "201 /alias/h"},
		{"PUT", "/part1", "", "201 /part1"},
		{"MKCOL", "/dir/", "", "201 /dir/"},
		{"COPY", "/f", "Destination: /copy", "204"},
		{"MOVE", "/g", "Destination: /moved", "204"},
		{"DELETE", "/f", "", "204"},
		{"GET", "/stored", "", "200"},
		{"PUT", "/%2e%2e/x", "", "400"},
	} {
		var fields []string
		if step.field != "" {
			fields = []string{step.field}
		}
		equal(t, step.method+" "+step.target, s.write(step.method, step.target, "", fields...), step.want)
	}
	for _, name := range []string{"h", "p1", "dir", "copy", "moved"} {
		if _, err := os.Stat(filepath.Join(s.dir, "html/w", name)); err != nil {
			t.Error(err)
		}
	}
	equal(t, "stored", eventually(t, func() string { return s.file("html/w/stored") }), "s")
}
