package cachectl

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Verdict is what one kind of cache does with a response.
type Verdict struct {
	// Cache is the name of the cache.
	Cache string
	// Reuse reports whether the cache serves a second request without a request to the server.
	Reuse bool
	// For is how long the cache does so, Forever if there is no limit; 0 if Reuse is false.
	For time.Duration
	// Because is the reason: what in the response decides.
	Because string
}

// Forever is a duration without limit.
const Forever time.Duration = math.MaxInt64

// Explain returns what caches do with r as a response that was received just now, for each cache as
// measured or according to its source:
//
//   - Chromium 156 (net/http/http_response_headers.cc, GetFreshnessLifetimes) and Firefox 153
//     (netwerk/protocol/http/nsHttpResponseHead.cpp, MustValidate and
//     ComputeFreshnessLifetime), both measured by internal/e2e, cell by cell;
//   - Safari (WebKit, NetworkProcess/cache and CacheValidation.cpp), by its source alone;
//   - Varnish 7 with its built-in VCL (bin/varnishd/cache/cache_rfc2616.c);
//   - nginx's proxy_cache without proxy_cache_valid (ngx_http_upstream.c);
//   - any other shared cache, at the most that RFC 9111 allows.
//
// A response's age counts against its lifetime. Browsers and RFC 9111 (section 4.2.3) take it from Date
// and Age, Varnish from Age alone, and nginx ignores it. nginx and Varnish compare Expires with their
// own clocks, Varnish only where Date does not contradict them.
//
// Responses to methods other than GET and HEAD are not for caches: Explain returns nil for them.
func Explain(r *Response) []Verdict {
	if r.Request != nil && r.Request.Method != http.MethodGet && r.Request.Method != http.MethodHead {
		return nil
	}
	f := parseFields(r)
	return []Verdict{chromium(f), firefox(f), safari(f), varnish(f), nginxCache(f), sharedCache(f)}
}

// Sticks reports whether a cache would reuse r, an error page that does not state for how long: the
// incident that this package prevents. v is the verdict of the first such cache.
func Sticks(r *Response) (v Verdict, sticks bool) {
	if r.Status < 400 || explicitFreshness(r) {
		return Verdict{}, false
	}
	for _, v := range Explain(r) {
		if v.Reuse {
			return v, true
		}
	}
	return Verdict{}, false
}

// cacheFields are the fields of a response, and of its request, that decide about caching.
type cacheFields struct {
	status                  int
	noStore, noCache        bool
	private, mustRevalidate bool
	pragma                  bool
	pragmaContains          bool // no-cache is anywhere in Pragma
	varyAll                 bool
	cookie                  bool
	maxAge, sharedMaxAge    *time.Duration
	expires                 string
	hasExpires              bool
	now, date               time.Time     // date is now where the response has none
	ageField                time.Duration // the value of Age
	negativeAge             bool
	age                     time.Duration // since date, or ageField if that is more (RFC 9111 section 4.2.3)
	expiresAt               *time.Time    // nil if Expires is not a date
	modified                *time.Time
	authorized              bool // the request has credentials
	public                  bool
}

func parseFields(r *Response) *cacheFields {
	h := r.Header
	f := &cacheFields{status: r.Status, varyAll: variesOnAll(h["Vary"]), cookie: len(h["Set-Cookie"]) > 0, now: time.Now().Truncate(time.Second), pragma: hasDirective(h["Pragma"], "no-cache")}
	if r.Request != nil {
		f.authorized = r.Request.Header.Get("Authorization") != ""
	}
	for _, line := range h["Cache-Control"] {
		for directive := range elements(line) {
			f.directive(strings.TrimSpace(directive))
		}
	}
	f.pragmaContains = strings.Contains(strings.ToLower(strings.Join(h["Pragma"], ",")), "no-cache")
	f.date = f.now
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		f.date = at
	}
	if lines := h["Age"]; len(lines) > 0 {
		f.negativeAge = strings.HasPrefix(strings.TrimSpace(lines[0]), "-")
		f.ageField = *cmp.Or(firstAge(nil, strings.TrimSpace(lines[0])), new(time.Duration))
	}
	f.age = max(f.ageField, f.now.Sub(f.date))
	if lines := h["Expires"]; len(lines) > 0 {
		f.expires, f.hasExpires = strings.TrimSpace(lines[0]), true
		if at, err := http.ParseTime(f.expires); err == nil {
			f.expiresAt = &at
		}
	}
	if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil && at.Before(f.date) {
		f.modified = &at
	}
	return f
}

func (f *cacheFields) directive(d string) {
	name, value, hasValue := strings.Cut(d, "=")
	switch strings.ToLower(name) {
	case "no-store":
		f.noStore = true
	case "no-cache":
		f.noCache = f.noCache || !hasValue
	case "private":
		f.private = f.private || !hasValue
	case "public":
		f.public = true
	case "must-revalidate":
		f.mustRevalidate = true
	case "max-age":
		f.maxAge = firstAge(f.maxAge, value)
	case "s-maxage":
		f.sharedMaxAge = firstAge(f.sharedMaxAge, value)
	}
}

// firstAge returns before, or else the age that value states, if any: the first of several counts.
func firstAge(before *time.Duration, value string) *time.Duration {
	if before != nil || !isNumber(strings.Trim(value, `"`)) {
		return before
	}
	n, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
	if err != nil || n > int64(Forever/time.Second) {
		n = int64(Forever / time.Second)
	}
	age := time.Duration(n) * time.Second
	return &age
}

func hasDirective(lines []string, want string) bool {
	for _, line := range lines {
		for d := range elements(line) {
			if strings.EqualFold(strings.TrimSpace(d), want) {
				return true
			}
		}
	}
	return false
}

// notReused returns the Verdict of a cache that does not reuse the response.
func notReused(cache, because string) Verdict { return Verdict{Cache: cache, Because: because} }

// fresh returns the Verdict for a response with the lifetime d and the age.
func fresh(cache string, d, age time.Duration, because string) Verdict {
	switch {
	case d <= 0:
		return notReused(cache, because)
	case d <= age:
		return notReused(cache, fmt.Sprintf("%s, and it is %v old", because, age))
	}
	return Verdict{cache, true, d - age, because}
}

// explicit returns the Verdict by max-age or a date in Expires, if the response has either.
func (f *cacheFields) explicit(cache string) (v Verdict, ok bool) {
	return f.explicitOf(cache, f.maxAge, "max-age", f.date, f.age)
}

// explicitOf returns the Verdict by the directive of the name, if there is one, or else by a date in Expires,
// counted from the time from, in a cache that takes age for the response's age.
func (f *cacheFields) explicitOf(cache string, seconds *time.Duration, name string, from time.Time, age time.Duration) (v Verdict, ok bool) {
	switch {
	case seconds != nil:
		return fresh(cache, *seconds, age, fmt.Sprintf("%s=%d", name, *seconds/time.Second)), true
	case f.expiresAt != nil:
		return fresh(cache, f.expiresAt.Sub(from), age, "Expires: "+f.expires), true
	}
	return v, false
}

// heuristic returns the Verdict by a tenth of the time since Last-Modified, at most most; 0 means no bound.
func (f *cacheFields) heuristic(cache string, most time.Duration) Verdict {
	if f.modified == nil {
		return notReused(cache, "nothing says for how long")
	}
	d := f.date.Sub(*f.modified) / 10
	if most > 0 {
		d = min(d, most)
	}
	return fresh(cache, d, f.age, "a tenth of its age, by Last-Modified")
}

// revalidated returns the Verdict by what keeps every browser from reusing the response, if it has any.
func (f *cacheFields) revalidated(cache string) (v Verdict, ok bool) {
	switch {
	case f.noStore:
		return notReused(cache, "no-store"), true
	case f.noCache:
		return notReused(cache, "no-cache"), true
	case f.varyAll:
		return notReused(cache, "Vary: *"), true
	}
	return v, false
}

func chromium(f *cacheFields) Verdict {
	const name = "Chromium"
	if v, ok := f.revalidated(name); ok {
		return v
	}
	if f.pragma {
		return notReused(name, "Pragma: no-cache")
	}
	if f.maxAge == nil && f.expires == "0" {
		return notReused(name, "Expires: 0")
	}
	if v, ok := f.explicit(name); ok {
		return v
	}
	switch f.status {
	case 200, 203, 206:
		if f.mustRevalidate {
			return notReused(name, "must-revalidate, and nothing says for how long")
		}
		return f.heuristic(name, 0)
	case 300, 301, 308, 410:
		return Verdict{name, true, Forever, fmt.Sprintf("a %d is taken for permanent, and nothing says otherwise", f.status)}
	}
	return notReused(name, fmt.Sprintf("nothing says for how long a %d may be kept", f.status))
}

func firefox(f *cacheFields) Verdict {
	const name = "Firefox"
	switch f.status {
	case 200, 203, 206, 301, 302, 303, 304, 307, 308, 410:
	default: // a 300 neither, with any fields, with or without Location
		return notReused(name, fmt.Sprintf("a %d is never reused", f.status))
	}
	if v, ok := f.revalidated(name); ok {
		return v
	}
	if f.pragma {
		return notReused(name, "Pragma: no-cache")
	}
	if f.maxAge == nil && f.hasExpires && f.expiresAt == nil {
		return notReused(name, "an Expires that is no date is one in the past")
	}
	if f.negativeAge {
		return notReused(name, "a negative Age is a very large one, unless the seconds that the response took make up for it")
	}
	if v, ok := f.explicit(name); ok {
		return v
	}
	if f.status == 410 { // also with Last-Modified
		return Verdict{name, true, Forever, "a 410 is taken for permanent, and nothing says otherwise"}
	}
	if temporary := f.status == 302 || f.status == 303 || f.status == 307; temporary && !f.public {
		return notReused(name, fmt.Sprintf("nothing says for how long a %d may be kept, nor that it is public", f.status))
	}
	return f.heuristic(name, 7*24*time.Hour)
}

func safari(f *cacheFields) Verdict {
	const name = "Safari"
	if v, ok := f.revalidated(name); ok {
		return v
	}
	if f.pragmaContains {
		return notReused(name, "Pragma: no-cache")
	}
	if v, ok := f.explicit(name); ok {
		return v
	}
	switch {
	case f.hasExpires:
		return notReused(name, "an Expires that is no date is one in the past")
	case f.status == 301 || f.status == 410:
		return fresh(name, 365*24*time.Hour, f.age, fmt.Sprintf("a %d is taken for permanent, and nothing says otherwise", f.status))
	}
	return f.heuristic(name, 0)
}

// varnishTTL is Varnish's default_ttl.
const varnishTTL = 2 * time.Minute

// varnishSkew is Varnish's clock_skew: it takes a Date that differs by less from its clock for now.
const varnishSkew = 10 * time.Second

func varnish(f *cacheFields) Verdict {
	const name = "Varnish"
	explicitOnly := false
	switch f.status {
	case 200, 203, 204, 300, 301, 304, 404, 410, 414:
	case 302, 307:
		explicitOnly = true
	default:
		return notReused(name, fmt.Sprintf("a %d is not cached", f.status))
	}
	switch v, ok := f.forbidden(name); {
	case f.cookie:
		return notReused(name, "Set-Cookie")
	case ok:
		return v
	case f.authorized:
		return notReused(name, "the request has an Authorization")
	case f.sharedMaxAge == nil && f.maxAge == nil && f.expiresAt != nil && f.expiresAt.Unix() == 0:
		return fresh(name, varnishTTL, f.ageField, "its default; Expires at the epoch's second 0 is none for it")
	}
	from := f.date
	if f.now.Sub(from).Abs() < varnishSkew && f.expiresAt != nil && !f.expiresAt.Before(from) {
		from = f.now
	}
	if v, ok := f.sharedExplicit(name, from, f.ageField); ok {
		return v
	}
	if explicitOnly {
		return notReused(name, fmt.Sprintf("nothing says for how long a %d may be kept", f.status))
	}
	return fresh(name, varnishTTL, f.ageField, "its default, since nothing says otherwise")
}

// forbidden returns the Verdict by what forbids every shared cache to store the response, if it has any.
func (f *cacheFields) forbidden(cache string) (v Verdict, ok bool) {
	switch {
	case f.noStore || f.noCache || f.private:
		return notReused(cache, "Cache-Control: "+f.forbiddingDirective()), true
	case f.varyAll:
		return notReused(cache, "Vary: *"), true
	}
	return v, false
}

// sharedExplicit returns the Verdict by s-maxage, or else by max-age or Expires: see explicitOf.
func (f *cacheFields) sharedExplicit(cache string, from time.Time, age time.Duration) (v Verdict, ok bool) {
	if f.sharedMaxAge != nil {
		return f.explicitOf(cache, f.sharedMaxAge, "s-maxage", from, age)
	}
	return f.explicitOf(cache, f.maxAge, "max-age", from, age)
}

// forbiddingDirective returns the directive that forbids shared caches to store the response.
func (f *cacheFields) forbiddingDirective() string {
	switch {
	case f.noStore:
		return "no-store"
	case f.noCache:
		return "no-cache"
	}
	return "private"
}

func nginxCache(f *cacheFields) Verdict {
	const name = "nginx proxy_cache"
	if f.cookie {
		return notReused(name, "Set-Cookie")
	}
	if v, ok := f.forbidden(name); ok {
		return v
	}
	if v, ok := f.sharedExplicit(name, f.now, 0); ok {
		return v
	}
	return notReused(name, "nothing says for how long, and it has no default without proxy_cache_valid")
}

// heuristicallyCacheable are the statuses that a cache may store without explicit freshness (RFC
// 9110 section 15.1).
var heuristicallyCacheable = []int{200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}

func sharedCache(f *cacheFields) Verdict {
	const name = "other shared caches"
	if v, ok := f.forbidden(name); ok {
		return v
	}
	if f.authorized && !f.public && f.sharedMaxAge == nil && !f.mustRevalidate {
		return notReused(name, "the request has an Authorization")
	}
	if v, ok := f.sharedExplicit(name, f.date, f.age); ok {
		return v
	}
	switch {
	case f.hasExpires:
		return notReused(name, "an Expires that is no date is one in the past (RFC 9111 section 5.3)")
	case slices.Contains(heuristicallyCacheable, f.status):
		return Verdict{name, true, Forever, fmt.Sprintf("a %d may be kept as long as the cache sees fit (RFC 9111 section 4.2.2)", f.status)}
	case f.public:
		return Verdict{name, true, Forever, fmt.Sprintf("a %d that is public may be kept as long as the cache sees fit (RFC 9111 section 4.2.2)", f.status)}
	}
	return notReused(name, fmt.Sprintf("a %d is kept only where something says for how long, or that it is public", f.status))
}
