package cachectl_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters/filtertest"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestPolicies(t *testing.T) {
	original := func() http.Header {
		return http.Header{"Cache-Control": {"max-age=60", "public"}, "Expires": {"0"}, "Pragma": {"x"}, "Date": {"d"}, "Age": {"1"}}
	}
	tests := []struct {
		name     string
		policy   cachectl.Policy
		in, want http.Header
	}{
		{"Keep", cachectl.Policy{Mode: cachectl.Keep}, original(), original()},
		{"Override removes all there was",
			cachectl.Policy{Mode: cachectl.Override, CacheControl: "no-store"}, original(),
			http.Header{"Cache-Control": {"no-store"}, "Date": {"d"}, "Age": {"1"}}},
		{"Override with nothing to set",
			cachectl.Policy{Mode: cachectl.Override}, original(), http.Header{"Date": {"d"}, "Age": {"1"}}},
		{"AddIfAbsent, present",
			cachectl.Policy{Mode: cachectl.AddIfAbsent, CacheControl: "no-store", Expires: "0"}, original(), original()},
		{"AddIfAbsent, one absent",
			cachectl.Policy{Mode: cachectl.AddIfAbsent, CacheControl: "no-store", Expires: "0"}, http.Header{"Expires": {"1"}},
			http.Header{"Expires": {"1"}, "Cache-Control": {"no-store"}}},
		{"Append",
			cachectl.Policy{Mode: cachectl.Append, CacheControl: "private"}, original(),
			http.Header{"Cache-Control": {"max-age=60", "public", "private"}, "Expires": {"0"}, "Pragma": {"x"}, "Date": {"d"}, "Age": {"1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules := cachectl.Rules{{Match: cachectl.Any(), Policy: test.policy}}
			rules.Apply(&cachectl.Response{Status: 200, Header: test.in})
			if !maps.EqualFunc(test.in, test.want, slices.Equal) {
				t.Errorf("left %v, want %v", test.in, test.want)
			}
		})
	}
}

// Only the first rule that matches is applied; one with Keep stops the search.
func TestFirstRuleWins(t *testing.T) {
	rules := cachectl.Rules{
		{cachectl.Status(404), cachectl.Policy{}},
		{cachectl.Class(4), cachectl.Policy{Mode: cachectl.Override, CacheControl: "no-store"}},
		{cachectl.Any(), cachectl.Policy{Mode: cachectl.Append, CacheControl: "private"}},
	}
	for status, want := range map[int]string{404: "[]", 410: "[no-store]", 200: "[private]", 103: "[]", 101: "[]"} {
		h := http.Header{}
		rules.Apply(&cachectl.Response{Status: status, Header: h})
		if got := fmt.Sprint(h["Cache-Control"]); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

func TestBadRules(t *testing.T) {
	for want, rule := range map[string]cachectl.Rule{
		"cachectl: rule 1: no Match":       {},
		"cachectl: rule 1: unknown mode 9": {cachectl.Any(), cachectl.Policy{Mode: 9}},
		`cachectl: rule 1: modes Keep and Cap set no fields, but there are Cache-Control "no-store", Expires "" and Targeted ""`: {cachectl.Any(), cachectl.Policy{CacheControl: "no-store"}},
		"cachectl: rule 1: malformed Cache-Control \"no-store\\r\\nX: 1\"":                                                       {cachectl.Any(), cachectl.Policy{Mode: cachectl.Override, CacheControl: "no-store\r\nX: 1"}},
		`cachectl: rule 1: malformed Cache-Control "private,,no-store"`:                                                          {cachectl.Any(), cachectl.Policy{Mode: cachectl.Override, CacheControl: "private,,no-store"}},
		`cachectl: rule 1: malformed Expires "tomorrow": want an HTTP date or 0`:                                                 {cachectl.Any(), cachectl.Policy{Mode: cachectl.Override, Expires: "tomorrow"}},
	} {
		filter, err := cachectl.New(cachectl.Rules{{Match: cachectl.Any()}, rule})
		if filter != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func errorPages(t testing.TB) func(http.Handler) http.Handler {
	t.Helper()
	filter, err := cachectl.New(cachectl.ErrorPages())
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

func TestConformance(t *testing.T) { filtertest.Test(t, errorPages(t)) }

// The incident: browsers keep a 410 page without caching fields for ever, and
// nginx's add_header does not apply to it. The test reads the bytes sent.
func TestAccidentSticky410(t *testing.T) {
	leaktest.Check(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/chosen" {
			w.Header().Set("Cache-Control", "max-age=60")
		}
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusGone)
	})
	client := wiretest.Dial(t, wiretest.Serve(t, errorPages(t)(handler)))
	for path, want := range map[string]string{
		"/":       "HTTP/1.1 410 Gone\ncache-control: private, no-cache\ncontent-length: 0\ncontent-type: text/html\nexpires: Thu, 01 Jan 1970 00:00:01 GMT",
		"/chosen": "HTTP/1.1 410 Gone\ncache-control: max-age=60\ncontent-length: 0\ncontent-type: text/html",
	} {
		client.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Receive("HTTP/1.1 103 Early Hints\r\n")
		client.Header() // the handler's own fields; none of the filter's
		if got := wiretest.Lines(client.Header()); got != want {
			t.Errorf("%s: the client got\n%s\nwant\n%s", path, got, want)
		}
	}
}

func TestErrorPages(t *testing.T) {
	for status, sticky := range map[int]bool{200: true, 206: true, 301: true, 304: true, 308: true, 400: false, 404: false, 405: false, 410: false, 414: false, 451: false, 500: false, 501: false, 503: false} {
		h := http.Header{"Pragma": {"x"}}
		cachectl.ErrorPages().Apply(&cachectl.Response{Status: status, Header: h})
		if touched := h.Get("Cache-Control") == "private, no-cache" && h.Get("Expires") != "" && h.Get("Pragma") == ""; touched == sticky {
			t.Errorf("%d: %v", status, h)
		}
	}
}

func Example() {
	assets := cachectl.Rule{
		Match:  cachectl.And(cachectl.Path("/assets/**"), cachectl.Class(2, 3)),
		Policy: cachectl.Policy{Mode: cachectl.AddIfAbsent, CacheControl: "public, max-age=31536000, immutable"},
	}
	cache, err := cachectl.New(append(cachectl.ErrorPages(), assets))
	if err != nil {
		panic(err)
	}
	handler := cache(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/assets/app.js" {
			w.WriteHeader(http.StatusGone)
		}
	}))
	for _, path := range []string{"/assets/app.js", "/assets/old.js"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, w.Header().Get("Cache-Control"))
	}
	// Output:
	// 200 public, max-age=31536000, immutable
	// 410 private, no-cache
}

func BenchmarkErrorPages(b *testing.B) {
	for _, status := range []int{200, 410} {
		b.Run(fmt.Sprint(status), func(b *testing.B) {
			h := errorPages(b)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.Header())
				h.ServeHTTP(w, r)
			}
		})
	}
}

// Rules make the header of a response whose Header is nil.
func TestRulesWithoutAHeader(t *testing.T) {
	r := &cachectl.Response{Status: 404}
	cachectl.CapErrors(time.Minute).Apply(r)
	if r.Header.Get("Cache-Control") == "" {
		t.Errorf("header %v", r.Header)
	}
}
