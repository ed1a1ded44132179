package engine_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// Complete responses of status 200 are written to files, and nothing else is.
func TestProxyStore(t *testing.T) {
	modified := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", modified.Format(http.TimeFormat))
		if r.URL.Path == "/none" {
			w.WriteHeader(http.StatusNotFound)
		}
		if r.URL.Path == "/redirect" {
			w.Header().Set("X-Accel-Redirect", "/off/off")
		}
		_, _ = w.Write([]byte("content of " + r.URL.Path))
	}))
	defer target.Close()
	broken := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
	})
	s := serve(t, map[string]string{"data/a/old": "old", "nginx.conf": `events {} http { gzip on; gzip_types *; gzip_min_length 1; server {
		root data;
		location / { proxy_pass ` + target.URL + `; proxy_store on; proxy_store_access group:r all:r; }
		location /path/ { proxy_pass ` + target.URL + `; proxy_store $arg_to; }
		location /off/ { proxy_pass ` + target.URL + `; location /off/off { proxy_pass ` + target.URL + `; proxy_store off; } }
		location /broken { proxy_pass http://` + broken + `; proxy_store on; }
		} }`})
	for _, path := range []string{"/a/b/c", "/a/old", "/none", "/path/x?to=data/p", "/path/y?to=", "/path/z?to=data/../../q", "/off/x", "/off/off", "/redirect"} {
		s.get(path, "Accept-Encoding: gzip")
	}
	s.request("HEAD", "/head")
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("a response that is broken off looks complete")
			}
		}()
		s.engine.Listeners()[0].Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/broken", nil))
	}()
	var files []string
	err := filepath.WalkDir(filepath.Join(s.dir), func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(name) != "nginx.conf" {
			rel, _ := filepath.Rel(s.dir, name)
			files = append(files, rel+": "+s.file(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"data/a/b/c: content of /a/b/c", "data/a/old: content of /a/old", "data/p: content of /path/x"}
	if len(files) != len(want) {
		t.Fatalf("%q", files)
	}
	for i := range want {
		equal(t, "a file", files[i], want[i])
	}
	info, err := os.Stat(filepath.Join(s.dir, "data/a/b/c"))
	if err != nil {
		t.Fatal(err)
	}
	if !info.ModTime().Equal(modified) || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.ModTime(), info.Mode())
	}
	equal(t, "the content", s.get("/a/b/c").body, "content of /a/b/c")
}
