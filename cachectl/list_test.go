package cachectl_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

// TestQuotedDirectives: the content of a quoted string is no directive.
func TestQuotedDirectives(t *testing.T) {
	for _, control := range []string{`private="x-a, no-cache, x-b"`, `ext="\", no-store, \""`, `ext="a, max-age=60, b"`, `ext="no end, no-store`} {
		r := response("/", http.StatusGone, "Cache-Control: "+control)
		if v := cachectl.Explain(r)[0]; v.For != cachectl.Forever {
			t.Errorf("%s: %+v", control, v)
		}
		if cachectl.ErrorPages().Apply(r); r.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s became %q", control, r.Header)
		}
	}
	r := response("/", http.StatusNotFound, `Cache-Control: ext="a, max-age=99", max-age=3600,ext="b"`)
	if cachectl.CapErrors(time.Minute).Apply(r); r.Header.Get("Cache-Control") != `ext="a, max-age=99", max-age=60,ext="b"` {
		t.Errorf("%q", r.Header)
	}
}

// TestCapOfMalformedMaxAge: a date over the cap is replaced, and not only removed, where the response
// has a max-age that no browser reads: the page would stick.
func TestCapOfMalformedMaxAge(t *testing.T) {
	for _, control := range []string{"max-age=abc", "max-age", `max-age="60"`, "max-age=-1"} {
		r := response("/", http.StatusGone, "Cache-Control: "+control, "Expires: Thu, 31 Dec 2037 23:55:55 GMT")
		cachectl.CapErrors(time.Minute).Apply(r)
		if lines := strings.Join(r.Header["Cache-Control"], "; "); lines != control+"; max-age=60" || r.Header["Expires"] != nil {
			t.Errorf("%s became %q", control, r.Header)
		}
	}
}

// TestExplainPublicErrors: RFC 9111 lets caches keep a public response that does not state for how long
// (section 4.2.2). A proxy-revalidate does not let them keep the response to a request with credentials
// (section 3.5).
func TestExplainPublicErrors(t *testing.T) {
	shared := func(r *cachectl.Response) cachectl.Verdict {
		verdicts := cachectl.Explain(r)
		return verdicts[len(verdicts)-1]
	}
	if v := shared(response("/", http.StatusServiceUnavailable, "Cache-Control: public")); v.For != cachectl.Forever {
		t.Errorf("a public 503: %+v", v)
	}
	authorized := response("/", http.StatusOK, "Cache-Control: proxy-revalidate, max-age=60")
	authorized.Request.Header.Set("Authorization", "Bearer x")
	if v := shared(authorized); v.Reuse {
		t.Errorf("with credentials: %+v", v)
	}
}

// TestExplainProxyRevalidate: proxy-revalidate does not bind browsers.
func TestExplainProxyRevalidate(t *testing.T) {
	r := response("/", http.StatusOK, "Cache-Control: proxy-revalidate", "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT")
	if v := cachectl.Explain(r)[0]; !v.Reuse {
		t.Errorf("%+v", v)
	}
}

// TestSafariHeedsPragma: WebKit takes a Pragma with no-cache anywhere in it for a no-cache
// (parseCacheControlDirectives in its CacheValidation.cpp).
func TestSafariHeedsPragma(t *testing.T) {
	for _, pragma := range []string{"no-cache", "x, No-Cache"} {
		if v := cachectl.Explain(response("/", http.StatusGone, "Pragma: "+pragma))[2]; v.Cache != "Safari" || v.Reuse {
			t.Errorf("Pragma: %s: %+v", pragma, v)
		}
	}
}
