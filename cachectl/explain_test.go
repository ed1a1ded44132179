package cachectl_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// response returns a response to a GET of path; lines are its header fields.
func response(path string, status int, lines ...string) *cachectl.Response {
	r := &cachectl.Response{Request: httptest.NewRequest("GET", path, nil), Status: status, Header: http.Header{}}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// TestExplain: which caches reuse a response. What Chromium and Firefox do is measured in
// internal/e2e; no browser test measures the other caches.
func TestExplain(t *testing.T) {
	const old = "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT"
	now := "Date: " + httpDate(time.Now())
	for _, c := range []struct {
		response *cachectl.Response
		reuse    string // the caches that reuse it
	}{
		{response("/", 410), "Chromium Firefox Safari Varnish other shared caches"},
		{response("/", 410, "Cache-Control: private"), "Chromium Firefox Safari"},
		{response("/", 410, "Cache-Control: private, no-cache", "Expires: Thu, 01 Jan 1970 00:00:01 GMT"), ""},
		{response("/", 410, "Expires: Thu, 01 Jan 1970 00:00:00 GMT"), "Varnish"},
		{response("/", 410, "Expires: Thu, 01 Jan 1970 00:00:01 GMT"), ""},
		{response("/", 410, "Cache-Control: no-store"), ""},
		{response("/", 410, "Vary: *"), ""},
		{response("/", 404), "Varnish other shared caches"},
		{response("/", 404, "Set-Cookie: a=b"), "other shared caches"},
		{response("/", 500), ""},
		{response("/", 500, "Cache-Control: max-age=60"), "Chromium Safari nginx proxy_cache other shared caches"},
		{response("/", 200, "Cache-Control: max-age=60, s-maxage=0"), "Chromium Firefox Safari"},
		{response("/", 200, "Cache-Control: max-age=0, s-maxage=60"), "Varnish nginx proxy_cache other shared caches"},
		{response("/", 200, now, old), "Chromium Firefox Safari Varnish other shared caches"},
		{response("/", 200, now, old, "Cache-Control: must-revalidate"), "Firefox Safari Varnish other shared caches"},
		{response("/", 302), ""},
		{response("/", 300, now, old), "Chromium Safari Varnish other shared caches"},
		{response("/", 300, now, old, "Cache-Control: max-age=60"), "Chromium Safari Varnish nginx proxy_cache other shared caches"},
		{response("/", 301, now, old), "Chromium Firefox Safari Varnish other shared caches"},
		{response("/", 302, now, old), "Safari"},
		{response("/", 307, now, old), "Safari"},
		{response("/", 307, now, old, "Cache-Control: public"), "Firefox Safari other shared caches"},
		{response("/", 303, now, old), "Safari"},
		{response("/", 303, "Cache-Control: max-age=60"), "Chromium Firefox Safari nginx proxy_cache other shared caches"},
		{response("/", 302, "Cache-Control: max-age=60"), "Chromium Firefox Safari Varnish nginx proxy_cache other shared caches"},
	} {
		var reuse []string
		for _, v := range cachectl.Explain(c.response) {
			if v.Because == "" || v.Reuse != (v.For > 0) {
				t.Errorf("%d %v: %+v", c.response.Status, c.response.Header, v)
			}
			if v.Reuse {
				reuse = append(reuse, v.Cache)
			}
		}
		if got := strings.Join(reuse, " "); got != c.reuse {
			t.Errorf("%d %v: %q, want %q", c.response.Status, c.response.Header, got, c.reuse)
		}
	}
	post := response("/", 410)
	post.Request.Method = "POST"
	if v := cachectl.Explain(post); v != nil {
		t.Errorf("POST: %v", v)
	}
}

// TestHowLong: lifetimes are those that the response states.
func TestHowLong(t *testing.T) {
	synctest.Test(t, testHowLong) // where time stands still
}

func testHowLong(t *testing.T) {
	date, later := "Date: "+httpDate(time.Now()), "Expires: "+httpDate(time.Now().Add(time.Hour))
	for _, c := range []struct {
		response *cachectl.Response
		want     time.Duration // in Chromium
	}{
		{response("/", 200, "Cache-Control: max-age=60"), time.Minute},
		{response("/", 200, date, later), time.Hour},
		{response("/", 200, date, later, "Cache-Control: max-age=60"), time.Minute},
		{response("/", 200, "Cache-Control: max-age=99999999999999999999"), cachectl.Forever / time.Second * time.Second},
		{response("/", 200, date, "Last-Modified: "+httpDate(time.Now().Add(-24*time.Hour))), 24 * time.Hour / 10},
		{response("/", 410), cachectl.Forever},
	} {
		if v := cachectl.Explain(c.response)[0]; v.For != c.want {
			t.Errorf("%v: %+v, want %v", c.response.Header, v, c.want)
		}
	}
}

// TestSets: the ready-made rules set Cache-Control.
func TestSets(t *testing.T) {
	for _, c := range []struct {
		rules    cachectl.Rules
		response *cachectl.Response
		control  string
	}{
		{cachectl.AllErrorPages(), response("/", 503, "Cache-Control: max-age=60"), "private, no-cache"},
		{cachectl.AllErrorPages(), response("/", 200, "Cache-Control: max-age=60"), "max-age=60"},
		{cachectl.StaticAssets(), response("/app.3f9a1c2b.js", 200, "Cache-Control: no-store"), "public, max-age=31536000, immutable"},
		{cachectl.StaticAssets(), response("/a/app-BxK29d_a.css", 304), "public, max-age=31536000, immutable"},
		{cachectl.StaticAssets(), response("/app.js", 200), "no-cache"},
		{cachectl.StaticAssets(), response("/my-stylesheets.css", 200), "no-cache"},
		{cachectl.StaticAssets(), response("/app.3f9a1c2b.js", 404), ""},
		{cachectl.StaticAssets(), response("/app.3f9a1c2b.html", 200), ""},
		{cachectl.HTML(), response("/app.js", 200, "Content-Type: text/javascript"), ""},
		{cachectl.HTML(), response("/a", 200, "Content-Type: text/html; charset=utf-8"), "no-cache"},
		{cachectl.HTML(), response("/a", 304), "no-cache"},
		{cachectl.HTML(), response("/a/", 304), "no-cache"},
		{cachectl.HTML(), response("/a.css", 304), ""},
		{cachectl.API("/api/"), response("/api/x/y", 500), "no-store"},
		{cachectl.API("/api"), response("/apis", 200), ""},
		{cachectl.CapErrors(time.Minute), response("/", 404, "Cache-Control: public, max-age=3600, s-maxage=7200"), "public, max-age=60, s-maxage=60"},
		{cachectl.CapErrors(time.Minute), response("/", 404, "Cache-Control: max-age=30"), "max-age=30"},
		{cachectl.CapErrors(time.Minute), response("/", 404, "Expires: Thu, 31 Dec 2037 23:55:55 GMT"), "max-age=60"},
		{cachectl.CapErrors(time.Minute), response("/", 404), "private, no-cache"},
		{cachectl.CapErrors(time.Minute), response("/", 200, "Cache-Control: max-age=3600"), "max-age=3600"},
	} {
		if _, err := cachectl.New(c.rules); err != nil {
			t.Error(err)
		}
		if c.rules.Apply(c.response); c.response.Header.Get("Cache-Control") != c.control || len(c.response.Header["Cache-Control"]) > 1 {
			t.Errorf("%s %d: %v, want %q", c.response.Request.URL, c.response.Status, c.response.Header, c.control)
		}
	}
}

// TestTargeted: the field for shared caches is set, and removed with the others.
func TestTargeted(t *testing.T) {
	rules := cachectl.Rules{
		{Match: cachectl.Path("/cdn"), Policy: cachectl.Policy{Mode: cachectl.Override, CacheControl: "no-cache", Targeted: "max-age=60"}},
		{Match: cachectl.Any(), Policy: cachectl.Policy{Mode: cachectl.Override, CacheControl: "no-store"}},
	}
	for path, want := range map[string]string{"/cdn": "max-age=60", "/": ""} {
		a := response(path, 200, "CDN-Cache-Control: max-age=9999")
		if rules.Apply(a); a.Header.Get("CDN-Cache-Control") != want {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
	if _, err := cachectl.New(cachectl.Rules{{Match: cachectl.Any(), Policy: cachectl.Policy{Targeted: "a b"}}}); err == nil {
		t.Error("a malformed field is accepted")
	}
}

func gone(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/cookie" {
		w.Header().Set("Cache-Control", "public, max-age=9")
		w.Header().Set("Set-Cookie", "a=b")
		return
	}
	w.WriteHeader(http.StatusGone)
}

// TestWarn: each route is logged once, and one that New's filter mends is not.
func TestWarn(t *testing.T) {
	var log bytes.Buffer
	warn, err := cachectl.Warn(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	fix, err := cachectl.New(cachectl.ErrorPages())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/old/{page}", warn(http.HandlerFunc(gone)))
	mux.Handle("/cookie", warn(http.HandlerFunc(gone)))
	mux.Handle("/fixed", warn(fix(http.HandlerFunc(gone))))
	for _, path := range []string{"/old/1", "/old/2", "/old/3", "/fixed", "/cookie", "/cookie"} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "route=/old/{page} status=410 cache=Chromium") || !strings.Contains(lines[1], "route=/cookie") {
		t.Errorf("%q", lines)
	}
}

// TestFreeStuck: matching responses have the field, until the time given.
func TestFreeStuck(t *testing.T) {
	for until, want := range map[time.Duration][]string{time.Hour: {`"cache"`}, -time.Hour: nil} {
		free, err := cachectl.FreeStuck(cachectl.Path("/login"), time.Now().Add(until))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string][]string{"/login": want, "/": nil} {
			w := httptest.NewRecorder()
			free(http.HandlerFunc(gone)).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if got := w.Header()["Clear-Site-Data"]; !slices.Equal(got, want) {
				t.Errorf("%s, until %v: %q, want %q", path, until, got, want)
			}
		}
	}
}

// TestFiltersConform: the filters pass the conformance tests of filters.
func TestFiltersConform(t *testing.T) {
	warn, err := cachectl.Warn(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	free, err := cachectl.FreeStuck(cachectl.Path("/nowhere"), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Warn", func(t *testing.T) { filtertest.Test(t, warn) })
	t.Run("FreeStuck", func(t *testing.T) { filtertest.Test(t, free) })
	if _, err := cachectl.Warn(nil); err == nil {
		t.Error("Warn without a log")
	}
	if _, err := cachectl.FreeStuck(nil, time.Now()); err == nil {
		t.Error("FreeStuck without a Match")
	}
}
