package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/culvert-go/culvert/cachectl"
)

// visitor is a browser as the cache tests use it.
type visitor interface {
	open(t *testing.T, url string)
	eval(t *testing.T, expression string) string
	// at evaluates an expression that changes nothing, in a tab that may be between two pages: it
	// returns "" where a navigation has taken the page away before it was evaluated.
	at(t *testing.T, expression string) string
}

func (b *browser) open(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.tab, time.Minute)
	defer cancel()
	// A navigation that ends in an error page of the browser's own is an error for chromedp.
	if err := chromedp.Run(ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(url)); ctx.Err() != nil {
		t.Fatalf("%s: Chromium hangs: %v", url, err)
	}
}

func (b *browser) eval(t *testing.T, expression string) (text string) {
	t.Helper()
	b.run(t, chromedp.Evaluate(expression, &text, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return text
}

func (b *browser) at(t *testing.T, expression string) (text string) {
	t.Helper()
	err := chromedp.Run(b.tab, chromedp.Evaluate(expression, &text))
	if refused := (*cdproto.Error)(nil); errors.As(err, &refused) {
		return ""
	}
	if err != nil {
		t.Fatalf("%v\nconsole:\n%s", err, b.log())
	}
	return text
}

// cell is a response whose second visit is observed.
type cell struct {
	status int
	header http.Header
}

// header makes one of lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// cells are those of facts that people are surprised by, and their neighbours.
func cells() (all []cell) {
	for _, status := range []int{200, 203, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 429, 451, 500, 501, 503} {
		all = append(all, cell{status, header()})
	}
	date := func(after time.Duration) string { return time.Now().Add(after).UTC().Format(http.TimeFormat) }
	for _, status := range []int{200, 301, 404, 410, 503} {
		for _, lines := range [][]string{
			{"Cache-Control: max-age=600"}, {"Cache-Control: max-age=0"}, {"Cache-Control: no-cache"}, {"Cache-Control: no-store"},
			{"Cache-Control: private"}, {"Cache-Control: public"}, {"Cache-Control: must-revalidate"}, {"Cache-Control: s-maxage=0"},
			{"Expires: " + date(time.Hour)}, {"Expires: 0"}, {"Expires: -1"}, {"Expires: Thu, 01 Jan 1970 00:00:00 GMT"}, {"Expires: Thu, 01 Jan 1970 00:00:01 GMT"},
			{"Pragma: no-cache"}, {"Vary: *"}, {"Vary: Cookie"}, {"Last-Modified: " + date(-100*time.Hour)}, {"ETag: \"x\""}, {"Set-Cookie: a=b"},
			{"Cache-Control: max-age=60", "Cache-Control: private", "Expires: Thu, 01 Jan 1970 00:00:01 GMT"}, // nginx's add_header always
			{"Cache-Control: private, no-cache", "Expires: Thu, 01 Jan 1970 00:00:01 GMT"},                    // cachectl.ErrorPages
			{"Last-Modified: " + date(-100*time.Hour), "Cache-Control: must-revalidate"},
		} {
			all = append(all, cell{status, header(lines...)})
		}
	}
	// Heuristics apply to some redirects and not to others.
	modified := "Last-Modified: " + date(-100*time.Hour)
	for _, status := range []int{203, 300, 302, 303, 307, 308} {
		for _, lines := range [][]string{
			{modified}, {"Cache-Control: max-age=600"}, {"Expires: " + date(time.Hour)}, {"Cache-Control: public", modified}, {"Cache-Control: public"},
		} {
			all = append(all, cell{status, header(lines...)})
			if status == 300 { // a page with a choice, or a redirect
				all = append(all, cell{status, header(append(lines, "Location: /target")...)})
			}
		}
	}
	// Responses that have been under way for a while, or say so.
	old := "Date: " + date(-48*time.Hour)
	for _, status := range []int{200, 301, 404, 410} {
		for _, lines := range [][]string{
			{old}, {old, "Cache-Control: max-age=600"}, {old, "Cache-Control: max-age=259200"}, {old, modified},
			{old, "Expires: " + date(-24*time.Hour)}, {old, "Expires: " + date(time.Hour)}, {"Date: " + date(time.Hour), "Expires: " + date(time.Minute)},
			{"Age: 7200"}, {"Age: 7200", "Cache-Control: max-age=600"}, {"Age: 60", "Cache-Control: max-age=600"},
			// Firefox reads a negative Age as an unsigned number of 32 bits and adds the seconds that the response took
			// (nsHttpResponseHead::ComputeCurrentAge): -1 and one second would be 0.
			{"Age: -100000", "Cache-Control: max-age=600"},
			{"Age: 60", "Age: 7200", "Cache-Control: max-age=600"}, {"Age: 864000", modified},
		} {
			all = append(all, cell{status, header(lines...)})
		}
	}
	return all
}

// cellServer responds with cells, by their number, and counts requests.
type cellServer struct {
	*httptest.Server
	mu   sync.Mutex
	hits map[string]int
}

func startCellServer(t *testing.T, cells []cell) *cellServer {
	t.Helper()
	s := &cellServer{hits: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits[r.URL.Path]++
		s.mu.Unlock()
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/cell/%d", &n); err != nil {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>elsewhere</title>")
			return
		}
		for name, values := range cells[n].header {
			w.Header()[name] = values
		}
		if cells[n].status/100 == 3 && cells[n].status != 300 {
			w.Header().Set("Location", "/target")
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(cells[n].status)
		fmt.Fprintf(w, "<title>%d</title><p>%s", cells[n].status, strings.Repeat("so that no browser shows a page of its own. ", 20))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *cellServer) requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[path]
}

// cellsPerBrowser is how many cells a browser visits. Chromium, driven by chromedp, has been seen to
// stop navigating for good between the 270th visit and the 300th, at a different cell each time.
const cellsPerBrowser = 40

// TestExplainAgreesWithBrowsers visits each cell twice, in Chromium and in Firefox, and
// compares whether the server received a second request with what cachectl.Explain says.
func TestExplainAgreesWithBrowsers(t *testing.T) {
	for name, start := range map[string]func(*testing.T) visitor{
		"Chromium": func(t *testing.T) visitor { return startBrowser(t) },
		"Firefox":  func(t *testing.T) visitor { return startFirefox(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for part := range slices.Chunk(cells(), cellsPerBrowser) {
				t.Run("", func(t *testing.T) { compareVerdicts(t, name, start(t), part) })
			}
		})
	}
}

// compareVerdicts has a browser visit cells.
func compareVerdicts(t *testing.T, name string, b visitor, cells []cell) {
	t.Helper()
	s := startCellServer(t, cells)
	for i, c := range cells {
		path := fmt.Sprintf("/cell/%d", i)
		for range 2 {
			b.open(t, s.URL+path)
		}
		requests := s.requests(path)
		if requests == 0 {
			t.Errorf("%d %v: no request", c.status, c.header)
		}
		reused := requests == 1
		if v := verdict(t, name, c, s.URL+path); v.Reuse != reused {
			t.Errorf("%d %v: reused is %v, Explain says %+v", c.status, c.header, reused, v)
		}
	}
}

func verdict(t *testing.T, cache string, c cell, target string) cachectl.Verdict {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range cachectl.Explain(&cachectl.Response{Request: &http.Request{Method: http.MethodGet, URL: u}, Status: c.status, Header: c.header}) {
		if v.Cache == cache {
			return v
		}
	}
	t.Fatalf("no verdict for %s", cache)
	return cachectl.Verdict{}
}

// again requests a page a second time, in the ways that exist beside a navigation. Each way
// has a page of its own, so that none is found in a cache where another way has left it.
var again = map[string]func(t *testing.T, b visitor, url string){
	"fetch": func(t *testing.T, b visitor, url string) {
		for range 2 {
			b.eval(t, fmt.Sprintf("fetch(%q).then(r => r.text()).then(() => 'ok')", url))
		}
	},
	"iframe": func(t *testing.T, b visitor, url string) { load(t, b, "iframe", url) },
	"script": func(t *testing.T, b visitor, url string) { load(t, b, "script", url) },
	"back": func(t *testing.T, b visitor, url string) {
		leave(t, b, fmt.Sprintf("location.href = %q", url))
		settle(t, b, url)
		elsewhere := strings.TrimSuffix(url, url[strings.LastIndex(url, "/cell/"):]) + "/elsewhere"
		leave(t, b, fmt.Sprintf("location.href = %q", elsewhere))
		settle(t, b, elsewhere)
		leave(t, b, "history.back()")
		settle(t, b, url)
	},
}

// load has the page load an element twice.
func load(t *testing.T, b visitor, element, url string) {
	t.Helper()
	for range 2 {
		b.eval(t, fmt.Sprintf(`new Promise(done => { const e = document.createElement(%q); e.onload = e.onerror = () => { e.remove(); done("ok") }; e.src = %q; document.body.append(e) })`, element, url))
	}
}

// leave has the page go elsewhere when the evaluation has been reported: a report whose page is
// gone is an error of the evaluation.
func leave(t *testing.T, b visitor, how string) {
	t.Helper()
	b.eval(t, fmt.Sprintf("setTimeout(() => { %s }, 20), 'ok'", how))
}

// settle waits until the browser is at an address.
func settle(t *testing.T, b visitor, url string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if b.at(t, "location.href + ' ' + document.readyState") == url+" complete" {
			return
		}
	}
	t.Errorf("the browser does not come to %s", url)
}

// TestErrorPagesAreRequestedAgain: with cachectl.ErrorPages browsers request a 410 again, in whichever way the user returns to it
// but for the Back button, which only no-store stops. That they keep a bare one is a fact.
func TestErrorPagesAreRequestedAgain(t *testing.T) {
	fixed := cell{410, header("Cache-Control: private, no-cache", "Expires: Thu, 01 Jan 1970 00:00:01 GMT")}
	kinds := map[string]struct {
		cell
		requests, onBack int
	}{
		"bare":     {cell{410, header()}, 1, 1},
		"fixed":    {fixed, 2, 1},
		"no-store": {cell{410, header("Cache-Control: no-store")}, 2, 2},
	}
	for name, start := range map[string]func(*testing.T) visitor{
		"Chromium": func(t *testing.T) visitor { return startBrowser(t) },
		"Firefox":  func(t *testing.T) visitor { return startFirefox(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways, names := slices.Sorted(maps.Keys(again)), slices.Sorted(maps.Keys(kinds))
			var cells []cell
			for range ways {
				for _, kind := range names {
					cells = append(cells, kinds[kind].cell)
				}
			}
			s := startCellServer(t, cells)
			b := start(t)
			for i, way := range ways {
				for j, kind := range names {
					path, k := fmt.Sprintf("/cell/%d", i*len(names)+j), kinds[kind]
					b.open(t, s.URL+"/start")
					again[way](t, b, s.URL+path)
					want := k.requests
					if way == "back" {
						want = k.onBack
					}
					got := s.requests(path)
					if want == 1 {
						fact(t, fmt.Sprintf("requests of %s for a 410, %s, %s", name, kind, way), got, want)
					} else if got != want {
						t.Errorf("%s, %s: %d requests, want %d", kind, way, got, want)
					}
				}
			}
		})
	}
}
