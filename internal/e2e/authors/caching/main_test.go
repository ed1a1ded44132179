package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/e2e/authors/peers"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// page is a response of the application.
type page struct {
	status int
	header map[string]string
}

// application serves pages, and counts the requests for each.
type application struct {
	mu       sync.Mutex
	pages    map[string]page
	requests map[string]int
}

func (a *application) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests[r.URL.Path]++
	p, ok := a.pages[r.URL.Path]
	a.mu.Unlock()
	if !ok {
		p.status = http.StatusNotFound
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	if p.header["ETag"] != "" && r.Header.Get("If-None-Match") == p.header["ETag"] {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(p.status)
	io.WriteString(w, strings.Repeat("content of "+r.URL.Path+"\n", 200))
}

func (a *application) set(path string, p page) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages[path] = p
}

func (a *application) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[path]
}

// site is an application behind the gateway behind nginx, which caches.
type site struct {
	*application
	cache, gateway, operators string // addresses
}

func start(t *testing.T, pages map[string]page) *site {
	s := &site{application: &application{pages: pages, requests: map[string]int{}}}
	s.startWith(t, peers.Serve(t, s.application).URL)
	return s
}

func (s *site) startWith(t *testing.T, app string) {
	public, _ := peers.Program(t, func(ctx context.Context, ready func(net.Addr)) error {
		args := []string{"-listen", "127.0.0.1:0", "-operators", "127.0.0.1:0", "-app", app}
		return run(ctx, args, io.Discard, func(public, operators net.Addr) {
			s.operators = operators.String()
			ready(public)
		})
	})
	s.gateway = public
	s.cache = peers.Nginx(t, "proxy_cache_path $folder/cache keys_zone=pages:1m;", `
		location / {
			proxy_pass http://`+public+`; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
			proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host;
			proxy_cache pages; add_header X-Cache $upstream_cache_status always;
		}`)
}

func (s *site) get(t *testing.T, path string, fields ...string) *http.Response {
	t.Helper()
	response, _ := wiretest.Get(t, "http://"+s.cache+path, fields...)
	return response
}

// explained returns what the gateway shows operators about a page.
func (s *site) explained(t *testing.T, path string) (e explanation) {
	t.Helper()
	response, content := wiretest.Get(t, "http://"+s.operators+"/cache?path="+url.QueryEscape(path))
	if err := json.Unmarshal(content, &e); err != nil || response.StatusCode != 200 {
		t.Fatalf("%s: %d, %v: %s", path, response.StatusCode, err, content)
	}
	return e
}

// by returns the verdict about a cache whose name has the word.
func (e explanation) by(t *testing.T, word string) verdict {
	t.Helper()
	for _, v := range e.Verdicts {
		if strings.Contains(v.Cache, word) {
			return v
		}
	}
	t.Fatalf("no verdict about %s in %v", word, e.Verdicts)
	return verdict{}
}

const script = "/assets/app.3f9a2c1b.js"

var pages = map[string]page{
	script:                      {200, map[string]string{"Content-Type": "text/javascript"}},
	"/assets/site.css":          {200, map[string]string{"Content-Type": "text/css", "ETag": `"1"`}},
	"/assets/gone.00aa11bb.js":  {404, map[string]string{"Cache-Control": "public, max-age=3600"}},
	"/gone":                     {410, map[string]string{"Content-Type": "text/html"}},
	"/broken":                   {500, map[string]string{"Cache-Control": "max-age=600"}},
	"/":                         {200, map[string]string{"Content-Type": "text/html; charset=utf-8", "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}},
	"/api/orders":               {200, map[string]string{"Content-Type": "application/json", "Cache-Control": "max-age=60"}},
	"/login":                    {200, map[string]string{"Content-Type": "text/plain", "Cache-Control": "max-age=600", "Set-Cookie": "session=1"}},
	"/report.pdf":               {200, map[string]string{"Content-Type": "application/pdf", "Cache-Control": "max-age=600"}},
	"/unsaid.pdf":               {200, map[string]string{"Content-Type": "application/pdf"}},
	"/assets/login.11223344.js": {200, map[string]string{"Content-Type": "text/javascript", "Set-Cookie": "session=1"}},
}

// nginx keeps what the gateway says that it does, and the gateway shows operators the same.
func TestWhatIsKept(t *testing.T) {
	s := start(t, pages)
	kept := map[string]bool{script: true, "/report.pdf": true}
	for path := range pages {
		before := s.count(path)
		first, second := s.get(t, path), s.get(t, path)
		if first.StatusCode != pages[path].status || second.StatusCode != first.StatusCode {
			t.Errorf("%s: status %d, then %d, want %d", path, first.StatusCode, second.StatusCode, pages[path].status)
		}
		want := 2
		if kept[path] {
			want = 1
		}
		if got := s.count(path) - before; got != want {
			t.Errorf("%s: the application had %d requests of 2, want %d: %v", path, got, want, second.Header)
		}
		if nginx := s.explained(t, path).by(t, "nginx"); nginx.Reuse != kept[path] {
			t.Errorf("%s: operators read that nginx keeps it: %v, since %s", path, nginx.Reuse, nginx.Because)
		}
	}
}

// An error page never outlives the error.
func TestErrorsEnd(t *testing.T) {
	s := start(t, pages)
	for _, path := range []string{"/gone", "/assets/gone.00aa11bb.js", "/broken"} {
		failed := s.get(t, path)
		if got := failed.Header.Get("Cache-Control"); got != "private, no-cache" {
			t.Errorf("%s: Cache-Control %q of the error", path, got)
		}
		for _, browser := range []string{"Chromium", "Firefox", "Safari"} {
			if v := s.explained(t, path).by(t, browser); v.Reuse {
				t.Errorf("%s: %s keeps it, since %s", path, browser, v.Because)
			}
		}
		s.set(path, page{200, map[string]string{"Content-Type": "text/javascript"}})
		if again := s.get(t, path); again.StatusCode != 200 {
			t.Errorf("%s: status %d when it is back", path, again.StatusCode)
		}
	}
	for range 2 { // the asset that is back is kept for a year
		if asset := s.get(t, "/assets/gone.00aa11bb.js"); asset.StatusCode != 200 || !strings.Contains(asset.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("the asset that is back: %d, %q", asset.StatusCode, asset.Header.Get("Cache-Control"))
		}
	}
}

// The gateway's own error is not kept either.
func TestApplicationIsDown(t *testing.T) {
	s := &site{}
	s.startWith(t, "http://"+wiretest.Unused(t))
	if response := s.get(t, script); response.StatusCode != 502 || response.Header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("status %d, Cache-Control %q", response.StatusCode, response.Header.Get("Cache-Control"))
	}
	if e := s.explained(t, script); e.Status != 502 || e.by(t, "nginx").Reuse {
		t.Errorf("explained as %+v", e)
	}
}

// An asset without a hash is revalidated, and an encoding is kept apart.
func TestRevalidationAndEncoding(t *testing.T) {
	s := start(t, pages)
	if first := s.get(t, "/assets/site.css"); first.Header.Get("ETag") != `"1"` || !strings.Contains(first.Header.Get("Cache-Control"), "no-cache") {
		t.Errorf("an asset without a hash: %v", first.Header)
	}
	// nginx requests the whole of what it might keep.
	again, _ := wiretest.Get(t, "http://"+s.gateway+"/assets/site.css", "If-None-Match", `"1"`)
	if again.StatusCode != 304 || !strings.Contains(again.Header.Get("Cache-Control"), "no-cache") {
		t.Errorf("a revalidation: %d, %v", again.StatusCode, again.Header)
	}
	for range 2 {
		plain, zipped := s.get(t, script), s.get(t, script, "Accept-Encoding", "gzip")
		if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("encodings %q and %q", plain.Header.Get("Content-Encoding"), zipped.Header.Get("Content-Encoding"))
		}
	}
	if got := s.count(script); got != 2 {
		t.Errorf("the application had %d requests for two encodings, want 2", got)
	}
}

func TestOperators(t *testing.T) {
	s := start(t, pages)
	if response, _ := wiretest.Get(t, "http://"+s.operators+"/cache?path=nowhere"); response.StatusCode != 400 {
		t.Errorf("a path without a slash: %d", response.StatusCode)
	}
	if response := s.get(t, "/cache"); response.Header.Get("Content-Type") == "application/json" {
		t.Error("clients reach the operators' page")
	}
	if chromium := s.explained(t, script).by(t, "Chromium"); !chromium.Reuse || chromium.For != "8760h0m0s" {
		t.Errorf("an asset in Chromium: %+v", chromium)
	}
}

func TestConfiguration(t *testing.T) {
	for want, args := range map[string][]string{
		"-app":       {"-app", "ftp://x"},
		"-caches":    {"-app", "http://127.0.0.1:1", "-caches", "nginx"},
		"-operators": {"-app", "http://127.0.0.1:1", "-operators", "nowhere"},
	} {
		err := run(t.Context(), append([]string{"-listen", "127.0.0.1:0", "-operators", "127.0.0.1:0"}, args...), io.Discard, func(net.Addr, net.Addr) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
