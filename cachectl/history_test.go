package cachectl_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/internal/choices"
)

var histories = choices.NewFlags(3000, 1000)

var (
	oddDirectives = []string{
		"private", "public", "no-store", "no-cache", "must-revalidate", "proxy-revalidate", "immutable", "stale-while-revalidate=60",
		"max-age=60", "max-age=0", "max-age=-1", "max-age=abc", `max-age="60"`, "max-age=", "max-age", "max-age = 60", "max-age=99999999999999999999", "max-age=86400", "MAX-AGE=30",
		"s-maxage=60", "s-maxage=0", `s-maxage="7200"`, "s-maxage=x",
		"No-Store", "NO-CACHE", "x-no-store", "no-store=1", `no-cache="Set-Cookie"`, `private="X-A"`, "no-cache=X", "private=",
		`private="x-a, no-cache, x-b"`, `no-cache="a, no-store, b"`, `ext="\", no-store, \""`, `ext="max-age=60, max-age=5"`, `ext="no end`, "", " ",
	}
	oddStatuses = []int{200, 201, 203, 204, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 410, 414, 418, 429, 451, 499, 500, 501, 502, 503, 504, 599}
)

// newResponse returns a response with odd caching fields.
func newResponse(c *choices.Choices) *cachectl.Response {
	r := response(choices.Pick(c, "/", "/a.css", "/api/x"), choices.Pick(c, oddStatuses...))
	r.Request.Method = choices.Pick(c, "GET", "GET", "HEAD", "POST")
	if c.Bool(4) {
		r.Request.Header.Set("Authorization", "Bearer x")
	}
	now := time.Now()
	dates := []string{httpDate(now.Add(time.Hour)), httpDate(now.Add(-time.Hour)), httpDate(now.Add(-24 * time.Hour)), httpDate(now), httpDate(now.AddDate(10, 0, 0)),
		"Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:01 GMT", "0", "-1", "never", "", " 0 ", "Fri, 31 Dec 9999 23:59:59 GMT"}
	for range c.Int(3) {
		var line strings.Builder
		for i := range c.Int(5) {
			if i > 0 {
				line.WriteString(choices.Pick(c, ", ", ",", " ,\t", ",,"))
			}
			line.WriteString(choices.Pick(c, oddDirectives...))
		}
		r.Header.Add("Cache-Control", line.String())
	}
	for range choices.Pick(c, 0, 0, 1, 2) {
		r.Header.Add("Expires", choices.Pick(c, dates...))
	}
	for _, other := range []struct {
		name   string
		values []string
	}{
		{"Date", []string{httpDate(now), httpDate(now.Add(-time.Minute)), httpDate(now.Add(-48 * time.Hour)), httpDate(now.Add(time.Minute)), "no date"}},
		{"Age", []string{"0", "30", "7200", "-1", "x", ""}},
		{"Last-Modified", []string{httpDate(now.Add(-10 * time.Hour)), httpDate(now.Add(time.Hour)), "never", "Thu, 01 Jan 2015 00:00:00 GMT"}},
		{"Pragma", []string{"no-cache", "No-Cache", "x", "x, no-cache"}},
		{"Vary", []string{"*", "Accept", "Accept, *", "a*"}},
		{"Etag", []string{`"a"`}},
		{"Set-Cookie", []string{"a=b"}},
		{"Cdn-Cache-Control", []string{"max-age=99"}},
	} {
		if c.Bool(4) {
			r.Header.Add(other.name, choices.Pick(c, other.values...))
		}
	}
	return r
}

func httpDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// inBubble runs histories in a synctest bubble, where time stands still.
func inBubble(t *testing.T, history func(c *choices.Choices) error) {
	histories.Run(t, func(t *testing.T, c *choices.Choices) (err error) {
		synctest.Test(t, func(*testing.T) { err = history(c) })
		return err
	})
}

// TestExplainHistories: Explain's verdicts on shared caches are what RFC 9111 allows, and those on
// browsers keep the rules that every browser keeps.
func TestExplainHistories(t *testing.T) {
	inBubble(t, func(c *choices.Choices) error {
		r := newResponse(c)
		verdicts := cachectl.Explain(r)
		if method := r.Request.Method; method != "GET" && method != "HEAD" {
			if verdicts != nil {
				return fmt.Errorf("%s: %+v", method, verdicts)
			}
			return nil
		}
		parsed := readResponse(r.Header)
		for _, v := range verdicts {
			if v.Because == "" || v.Reuse != (v.For > 0) {
				return fmt.Errorf("%d %q: %+v", r.Status, r.Header, v)
			}
			if why := contradiction(v, r, parsed); why != "" {
				return fmt.Errorf("%d %q: %+v: %s", r.Status, r.Header, v, why)
			}
		}
		return nil
	})
}

// contradiction returns what v contradicts, "" if nothing.
func contradiction(v cachectl.Verdict, r *cachectl.Response, parsed *reading) string {
	authorized := r.Request.Header.Get("Authorization") != ""
	lifetime, explicit := parsed.lifetime()
	lifetime = max(0, lifetime-parsed.age)
	if _, aged := parsed.seconds("max-age", true); v.Cache == "Chromium" && explicit && !aged && parsed.expires == nil {
		explicit = strings.TrimSpace(r.Header["Expires"][0]) == "0" // any other Expires that is no date is none for it
	}
	switch v.Cache {
	case "other shared caches":
		if want := parsed.shared(r.Status, authorized); v.For != want {
			return fmt.Sprintf("RFC 9111 lets it be reused for %v", want)
		}
	case "Varnish", "nginx proxy_cache":
		if v.Reuse && (parsed.names("no-store") || parsed.has("no-cache") || parsed.has("private") || parsed.varyAll || r.Header["Set-Cookie"] != nil) {
			return "it may not be kept"
		}
	default:
		switch {
		case v.Reuse && (parsed.names("no-store") || parsed.has("no-cache") || parsed.varyAll):
			return "it may not be reused without revalidation"
		case v.Reuse && explicit && lifetime != v.For:
			return fmt.Sprintf("it is fresh for %v", lifetime)
		case v.Cache == "Chromium" && !v.Reuse && explicit && lifetime > 0 && !parsed.pragma && !parsed.names("no-store") && !parsed.has("no-cache") && !parsed.varyAll:
			return fmt.Sprintf("it is fresh for %v", lifetime)
		case v.Cache == "Chromium" && !v.Reuse && !explicit && !parsed.pragma && !parsed.names("no-store") && !parsed.has("no-cache") && !parsed.varyAll &&
			parsed.modified != nil && (r.Status == 200 || r.Status == 203 || r.Status == 206) && !parsed.names("must-revalidate"):
			if tenth := parsed.date.Sub(*parsed.modified) / 10; tenth > parsed.age {
				return "it is fresh for a tenth of its age"
			}
		}
	}
	return ""
}

// TestErrorPagesHistories: the rules for error pages change only error pages that do not state how long
// they may be kept, and no cache reuses the result.
func TestErrorPagesHistories(t *testing.T) {
	inBubble(t, func(c *choices.Choices) error {
		r := newResponse(c)
		all := c.Bool(2)
		rules := cachectl.ErrorPages()
		if all {
			rules = cachectl.AllErrorPages()
		}
		came := r.Header.Clone()
		rules.Apply(r)
		if r.Status < 400 || !all && readResponse(came).explicit(came) {
			if !maps.EqualFunc(r.Header, came, slices.Equal) {
				return fmt.Errorf("%d %q became %q", r.Status, came, r.Header)
			}
			return checkNotStuck(r, came)
		}
		want := came.Clone()
		want["Cache-Control"], want["Expires"] = []string{"private, no-cache"}, []string{"Thu, 01 Jan 1970 00:00:01 GMT"}
		delete(want, "Pragma")
		delete(want, "Cdn-Cache-Control")
		if !maps.EqualFunc(r.Header, want, slices.Equal) {
			return fmt.Errorf("%d %q became %q", r.Status, came, r.Header)
		}
		for _, v := range cachectl.Explain(r) {
			if v.Reuse {
				return fmt.Errorf("%d %q became %q: %+v", r.Status, came, r.Header, v)
			}
		}
		return checkNotStuck(r, came)
	})
}

// checkNotStuck returns an error if r is an error page that caches reuse for ever though the rules were
// applied.
func checkNotStuck(r *cachectl.Response, came http.Header) error {
	if v, sticks := cachectl.Sticks(r); sticks {
		return fmt.Errorf("%d %q became %q, and sticks: %+v", r.Status, came, r.Header, v)
	}
	if _, explicit := readResponse(came).lifetime(); explicit {
		return nil
	}
	for _, v := range cachectl.Explain(r) {
		if browser := v.Cache == "Chromium" || v.Cache == "Firefox" || v.Cache == "Safari"; browser && r.Status >= 400 && v.For == cachectl.Forever {
			return fmt.Errorf("%d %q became %q, and is reused for ever: %+v", r.Status, came, r.Header, v)
		}
	}
	return nil
}

// TestCapHistories: caches reuse a capped response no longer than they did before, and browsers no
// longer than the cap. No cache reuses it that did not before.
func TestCapHistories(t *testing.T) {
	inBubble(t, func(c *choices.Choices) error {
		r := newResponse(c)
		most := choices.Pick(c, time.Minute, time.Hour, 0, 365*24*time.Hour)
		before, came := cachectl.Explain(r), r.Header.Clone()
		errors := c.Bool(2)
		if errors {
			cachectl.CapErrors(most).Apply(r)
		} else {
			cachectl.Rules{{Match: cachectl.Any(), Policy: cachectl.Policy{Mode: cachectl.Cap, MaxAge: most}}}.Apply(r)
		}
		parsed := readResponse(came)
		for i, v := range cachectl.Explain(r) {
			explicit := parsed.explicit(came)
			switch browser := i < 3; {
			case errors && r.Status < 400:
				if !maps.EqualFunc(r.Header, came, slices.Equal) {
					return fmt.Errorf("%d %q became %q", r.Status, came, r.Header)
				}
			case v.For > before[i].For && v.For > most:
				return fmt.Errorf("%d %q became %q, capped at %v: %+v, was %+v", r.Status, came, r.Header, most, v, before[i])
			case v.Reuse && !before[i].Reuse:
				return fmt.Errorf("%d %q became %q, capped at %v: %+v, was %+v", r.Status, came, r.Header, most, v, before[i])
			case i == 4 && v.For > most: // nginx, which has no default
				return fmt.Errorf("%d %q became %q, capped at %v: %+v", r.Status, came, r.Header, most, v)
			case v.Cache == "Varnish" && v.For > max(most, 2*time.Minute): // its default
				return fmt.Errorf("%d %q became %q, capped at %v: %+v", r.Status, came, r.Header, most, v)
			case browser && v.For > most && (errors || explicit):
				return fmt.Errorf("%d %q became %q, capped at %v: %+v", r.Status, came, r.Header, most, v)
			}
		}
		return nil
	})
}

// TestRulesHistories: only the first rule that matches is applied, as its mode is documented.
func TestRulesHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		r := newResponse(c)
		if c.Bool(8) {
			r.Status = choices.Pick(c, 100, 101, 103)
		}
		var rules cachectl.Rules
		var applied *cachectl.Policy
		for range c.Int(4) {
			match, matches := newMatch(c, r, 2)
			p := cachectl.Policy{Mode: cachectl.Mode(c.Int(4))}
			if p.Mode != cachectl.Keep {
				p.CacheControl, p.Expires, p.Targeted = choices.Pick(c, "", "no-store", "public, max-age=5"), choices.Pick(c, "", "0"), choices.Pick(c, "", "max-age=9")
			}
			rules = append(rules, cachectl.Rule{Match: match, Policy: p})
			if matches && applied == nil && r.Status >= 200 {
				applied = &p
			}
		}
		came := r.Header.Clone()
		want := came.Clone()
		if applied != nil {
			apply(want, *applied)
		}
		filter, err := cachectl.New(rules)
		if err != nil {
			return err
		}
		if final := r.Status >= 200; final && c.Bool(2) { // over a handler
			w := httptest.NewRecorder()
			filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), r.Header)
				w.WriteHeader(r.Status)
			})).ServeHTTP(w, r.Request)
			r.Header = w.Header()
		} else {
			rules.Apply(r)
		}
		if !maps.EqualFunc(r.Header, want, slices.Equal) {
			return fmt.Errorf("%d %q became %q, want %q by %+v", r.Status, came, r.Header, want, applied)
		}
		return nil
	})
}

// apply implements the documentation of Mode.
func apply(h http.Header, p cachectl.Policy) {
	if p.Mode == cachectl.Override {
		for _, name := range []string{"Cache-Control", "Expires", "Pragma", "Cdn-Cache-Control"} {
			h.Del(name)
		}
	}
	for name, value := range map[string]string{"Cache-Control": p.CacheControl, "Expires": p.Expires, "CDN-Cache-Control": p.Targeted} {
		if there := h.Values(name) != nil; value != "" && !(p.Mode == cachectl.AddIfAbsent && there) {
			h.Add(name, value)
		}
	}
}

// newMatch returns a Match and reports whether it matches r.
func newMatch(c *choices.Choices, r *cachectl.Response, depth int) (m cachectl.Match, matches bool) {
	kind := c.Int(8)
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return cachectl.Any(), true
	case 1:
		status, more := choices.Pick(c, oddStatuses...), choices.Pick(c, r.Status, 207)
		return cachectl.Status(status, more), status == r.Status || more == r.Status
	case 2:
		digit := 1 + c.Int(5)
		return cachectl.Class(digit), fmt.Sprint(r.Status)[:1] == fmt.Sprint(digit)
	case 3:
		method := choices.Pick(c, "GET", "POST")
		return cachectl.Method(method), r.Request.Method == method
	case 4:
		return cachectl.Path("/api/**"), r.Request.URL.Path == "/api/x"
	case 5:
		m, matches := newMatch(c, r, depth-1)
		return cachectl.Not(m), !matches
	}
	first, one := newMatch(c, r, depth-1)
	second, other := newMatch(c, r, depth-1)
	if kind == 6 {
		return cachectl.And(first, second), one && other
	}
	return cachectl.Or(first, second), one || other
}
