package static_test

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/server"
)

// 2024-01-02 03:04:05 UTC is 0x65937d25.
var modified = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	lastModified = "Tue, 02 Jan 2024 03:04:05 GMT"
	later        = "Wed, 03 Jan 2024 03:04:05 GMT"
	earlier      = "Mon, 01 Jan 2024 03:04:05 GMT"
	etag         = `"65937d25-a"`
)

// get serves "0123456789" for a request with the given fields.
func get(t *testing.T, method, fields string, whole bool) (code int, w *httptest.ResponseRecorder) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, dir, status := anyLink.Open(name)
	if dir || status != 0 {
		t.Fatal(status)
	}
	defer f.Close()
	r := httptest.NewRequest(method, "/f", nil)
	for line := range strings.SplitSeq(fields, "\n") {
		if k, v, ok := strings.Cut(line, ": "); ok {
			r.Header.Add(k, v)
		}
	}
	w = httptest.NewRecorder()
	code = static.Serve(w, r, static.Content{File: f, Size: f.Size, ModTime: modified, Type: "text/x", Whole: whole})
	if code == 0 {
		code = w.Code
	}
	return code, w
}

func TestConditions(t *testing.T) {
	tests := []struct {
		fields string
		want   int
	}{
		{"", 200},
		{"If-None-Match: " + etag, 304},
		{"If-None-Match: W/" + etag, 304},
		{"If-None-Match: *", 304},
		{`If-None-Match: "x", ` + etag, 304},
		{`If-None-Match: "x"`, 200},
		{"If-Modified-Since: " + lastModified, 304},
		{"If-Modified-Since: " + later, 200}, // nginx: exact, not "or later"
		{"If-Modified-Since: " + earlier, 200},
		{"If-Modified-Since: nonsense", 200},
		{"If-Modified-Since: " + lastModified + "\nIf-None-Match: \"x\"", 200},
		{"If-Modified-Since: " + earlier + "\nIf-None-Match: " + etag, 200}, // both must agree
		{"If-Match: " + etag, 200},
		{"If-Match: W/" + etag, 412},
		{"If-Match: *", 200},
		{`If-Match: "x"`, 412},
		{"If-Unmodified-Since: " + earlier, 412},
		{"If-Unmodified-Since: " + lastModified, 200},
		{"Range: bytes=0-1\nIf-None-Match: " + etag, 304},
	}
	for _, tt := range tests {
		got, w := get(t, "GET", tt.fields, false)
		if got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.fields, got, tt.want)
		}
		if got == 304 && (w.Body.Len() != 0 || w.Header().Get("Etag") != etag || w.Header().Get("Last-Modified") != lastModified) {
			t.Errorf("%q: %v", tt.fields, w.Header())
		}
	}
}

func TestRange(t *testing.T) {
	tests := []struct {
		fields, contentRange, body string
		status                     int
	}{
		{"Range: bytes=0-3", "bytes 0-3/10", "0123", 206},
		{"Range: bytes=8-", "bytes 8-9/10", "89", 206},
		{"Range: bytes=-3", "bytes 7-9/10", "789", 206},
		{"Range: bytes=-99", "bytes 0-9/10", "0123456789", 206},
		{"Range: bytes=5-99", "bytes 5-9/10", "56789", 206},
		{"Range: bytes= 1 - 2", "bytes 1-2/10", "12", 206},
		{"Range: bytes=1-2,99-", "bytes 1-2/10", "12", 206},
		{"Range: bytes=10-", "bytes */10", "", 416},
		{"Range: bytes=-0", "bytes */10", "", 416},
		{"Range: bytes=3-1", "bytes */10", "", 416},
		{"Range: bytes=x", "bytes */10", "", 416},
		{"Range: bytes=1-2;", "bytes */10", "", 416},
		{"Range: bytes=99999999999999999999-", "bytes */10", "", 416},
		{"Range: lines=1-2", "", "0123456789", 200},
		{"Range: bytes=0-,0-", "", "0123456789", 200}, // more than the file
		{"Range: bytes=0-1\nIf-Range: " + etag, "bytes 0-1/10", "01", 206},
		{"Range: bytes=0-1\nIf-Range: \"x\"", "", "0123456789", 200},
		{"Range: bytes=0-1\nIf-Range: " + lastModified, "bytes 0-1/10", "01", 206},
		{"Range: bytes=0-1\nIf-Range: " + later, "", "0123456789", 200},
	}
	for _, tt := range tests {
		got, w := get(t, "GET", tt.fields, false)
		if got != tt.status || w.Header().Get("Content-Range") != tt.contentRange || w.Body.String() != tt.body {
			t.Errorf("%q: got %d, %q, %q", tt.fields, got, w.Header().Get("Content-Range"), w.Body)
		}
		if got != 416 && w.Header().Get("Content-Length") != fmt.Sprint(len(tt.body)) {
			t.Errorf("%q: Content-Length %s", tt.fields, w.Header().Get("Content-Length"))
		}
	}
}

func TestSeveralRanges(t *testing.T) {
	code, w := get(t, "GET", "Range: bytes=0-1,4-5,-1", false)
	if code != 206 || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
		t.Fatalf("got %d, Content-Length %s for %d bytes", code, w.Header().Get("Content-Length"), w.Body.Len())
	}
	kind, params, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil || kind != "multipart/byteranges" {
		t.Fatal(kind, err)
	}
	r := multipart.NewReader(w.Body, params["boundary"])
	for _, want := range []string{"bytes 0-1/10 text/x 01", "bytes 4-5/10 text/x 45", "bytes 9-9/10 text/x 9"} {
		p, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(p)
		if got := p.Header.Get("Content-Range") + " " + p.Header.Get("Content-Type") + " " + string(data); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := r.NextPart(); err != io.EOF {
		t.Error(err)
	}
	_, head := get(t, "HEAD", "Range: bytes=0-1,4-5,-1", false)
	if head.Header().Get("Content-Length") != w.Header().Get("Content-Length") || head.Body.Len() != 0 {
		t.Errorf("HEAD: %v, %q", head.Header(), head.Body)
	}
}

func TestWholeIgnoresConditions(t *testing.T) {
	code, w := get(t, "GET", "If-None-Match: "+etag+"\nRange: bytes=0-1", true)
	if code != http.StatusOK || w.Body.String() != "0123456789" || w.Header().Get("Last-Modified") != "" {
		t.Errorf("got %d, %q, %v", code, w.Body, w.Header())
	}
}

// serveFile returns the address of a server of the file with content. Once it is opened, opened is called.
func serveFile(t *testing.T, content string, opened func(name string)) (url string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, _, status := anyLink.Open(name)
		if status != 0 {
			t.Error(status)
			return
		}
		defer f.Close()
		opened(name)
		static.Serve(w, r, static.Content{File: f, Size: f.Size, ModTime: f.ModTime, Type: "text/x"})
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String() + "/"
}

// Small parts are read into memory, and the kernel moves large ones. Both begin where they should.
func TestSmallAndLargeParts(t *testing.T) {
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "%09d\n", i)
	}
	content := b.String()
	url := serveFile(t, content, func(string) {})
	for fields, want := range map[string]string{
		"":                                    content,
		"bytes=32768-65535":                   content[32768:65536],
		"bytes=32768-65536":                   content[32768:65537],
		"bytes=1-":                            content[1:],
		"bytes=-7":                            content[len(content)-7:],
		"bytes=100-99999,5-9,100000-,0-4,9-9": content[100:100000] + content[5:10] + content[100000:] + content[:5] + content[9:10],
	} {
		r, _ := http.NewRequest("GET", url, nil)
		if fields != "" {
			r.Header.Set("Range", fields)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readParts(resp)
		if err != nil || got != want {
			t.Errorf("%q: %d bytes, want %d: %v", fields, len(got), len(want), err)
		}
	}
}

// readParts returns the content of all parts of a response.
func readParts(resp *http.Response) (string, error) {
	defer resp.Body.Close()
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "multipart/byteranges" || err != nil {
		data, err := io.ReadAll(resp.Body)
		return string(data), err
	}
	var all strings.Builder
	for r := multipart.NewReader(resp.Body, params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			return all.String(), nil
		}
		if err == nil {
			_, err = io.Copy(&all, p)
		}
		if err != nil {
			return "", err
		}
	}
}

// A file that becomes shorter while it is served leads to a response that is cut, with what there was.
func TestFileBecomesShorter(t *testing.T) {
	for _, size := range []int{10, 100 << 10} {
		url := serveFile(t, strings.Repeat("x", size), func(name string) {
			if err := os.Truncate(name, int64(size)/2); err != nil {
				t.Error(err)
			}
		})
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.ContentLength != int64(size) || len(got) != size/2 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: got %d of %d, %v", size, len(got), resp.ContentLength, err)
		}
	}
}
