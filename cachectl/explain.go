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

// Verdict is what one kind of cache does with an answer.
type Verdict struct {
	// Cache is its name.
	Cache string
	// Reuse says whether a second request is answered without asking the server.
	Reuse bool
	// For is for how long, Forever without limit; 0 where Reuse is false.
	For time.Duration
	// Because says what in the answer makes it so.
	Because string
}

// Forever is a time without limit.
const Forever time.Duration = math.MaxInt64

// Explain says what caches do with an answer to a GET that came just now, each as it was
// measured or as its source has it:
//
//   - Chromium 156 (net/http/http_response_headers.cc, GetFreshnessLifetimes) and Firefox 153
//     (netwerk/protocol/http/nsHttpResponseHead.cpp, MustValidate and
//     ComputeFreshnessLifetime), both measured by internal/e2e, cell by cell;
//   - Safari (WebKit, NetworkProcess/cache and CacheValidation.cpp), by its source alone;
//   - Varnish 7 with its built-in VCL (bin/varnishd/cache/cache_rfc2616.c);
//   - nginx's proxy_cache without proxy_cache_valid (ngx_http_upstream.c);
//   - any other shared cache as far as RFC 9111 lets it.
//
// The time that a response has been under way by its Date and its Age is over for browsers and by RFC 9111 (section 4.2.3), that by
// its Age for Varnish, and none for nginx; both take Expires by their own clocks, Varnish where Date does not contradict that.
//
// What answers to other methods than GET and HEAD say is for no cache: there are no
// Verdicts then.
func Explain(r *Response) []Verdict {
	if r.Request != nil && r.Request.Method != http.MethodGet && r.Request.Method != http.MethodHead {
		return nil
	}
	a := read(r)
	return []Verdict{chromium(a), firefox(a), safari(a), varnish(a), nginxCache(a), sharedCache(a)}
}

// Sticks says whether an error page would be reused by somebody without anybody having said
// for how long: the accident that this package is for.
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

// said is what an answer says about caching.
type said struct {
	status               int
	noStore, noCache     bool
	private, mustAsk     bool // must-revalidate
	pragma               bool
	pragmaHas            bool // no-cache is anywhere in Pragma
	varyAll              bool
	cookie               bool
	maxAge, sharedMaxAge *time.Duration
	expires              string
	hasExpires           bool
	now, date            time.Time     // date is now where the response has none
	told                 time.Duration // by Age
	negativeAge          bool
	age                  time.Duration // since date, or told (RFC 9111 section 4.2.3)
	expiresAt            *time.Time    // where it is a date
	modified             *time.Time
	authorized           bool // the request has credentials
	public               bool
}

func read(r *Response) *said {
	h := r.Header
	a := &said{status: r.Status, varyAll: variesOnAll(h["Vary"]), cookie: len(h["Set-Cookie"]) > 0, now: time.Now().Truncate(time.Second), pragma: hasDirective(h["Pragma"], "no-cache")}
	if r.Request != nil {
		a.authorized = r.Request.Header.Get("Authorization") != ""
	}
	for _, line := range h["Cache-Control"] {
		for directive := range elements(line) {
			a.directive(strings.TrimSpace(directive))
		}
	}
	a.pragmaHas = strings.Contains(strings.ToLower(strings.Join(h["Pragma"], ",")), "no-cache")
	a.date = a.now
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		a.date = at
	}
	if lines := h["Age"]; len(lines) > 0 {
		a.negativeAge = strings.HasPrefix(strings.TrimSpace(lines[0]), "-")
		a.told = *cmp.Or(firstAge(nil, strings.TrimSpace(lines[0])), new(time.Duration))
	}
	a.age = max(a.told, a.now.Sub(a.date))
	if lines := h["Expires"]; len(lines) > 0 {
		a.expires, a.hasExpires = strings.TrimSpace(lines[0]), true
		if at, err := http.ParseTime(a.expires); err == nil {
			a.expiresAt = &at
		}
	}
	if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil && at.Before(a.date) {
		a.modified = &at
	}
	return a
}

func (a *said) directive(d string) {
	name, value, hasValue := strings.Cut(d, "=")
	switch strings.ToLower(name) {
	case "no-store":
		a.noStore = true
	case "no-cache":
		a.noCache = a.noCache || !hasValue
	case "private":
		a.private = a.private || !hasValue
	case "public":
		a.public = true
	case "must-revalidate":
		a.mustAsk = true
	case "max-age":
		a.maxAge = firstAge(a.maxAge, value)
	case "s-maxage":
		a.sharedMaxAge = firstAge(a.sharedMaxAge, value)
	}
}

// firstAge keeps the first of several.
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

func no(cache, because string) Verdict { return Verdict{Cache: cache, Because: because} }

// fresh is a Verdict by a lifetime, of which the age is over.
func fresh(cache string, d, age time.Duration, because string) Verdict {
	switch {
	case d <= 0:
		return no(cache, because)
	case d <= age:
		return no(cache, fmt.Sprintf("%s, and it is %v old", because, age))
	}
	return Verdict{cache, true, d - age, because}
}

// explicit is what max-age or a date in Expires say, if either is there.
func (a *said) explicit(cache string) (v Verdict, ok bool) {
	return a.explicitOf(cache, a.maxAge, "max-age", a.date, a.age)
}

// explicitOf is what a directive of the name says, if it is there, or a date in Expires as it is from a time on, in a cache
// for which the age is over.
func (a *said) explicitOf(cache string, seconds *time.Duration, name string, from time.Time, age time.Duration) (v Verdict, ok bool) {
	switch {
	case seconds != nil:
		return fresh(cache, *seconds, age, fmt.Sprintf("%s=%d", name, *seconds/time.Second)), true
	case a.expiresAt != nil:
		return fresh(cache, a.expiresAt.Sub(from), age, "Expires: "+a.expires), true
	}
	return v, false
}

// heuristic is a tenth of the time since the last change, with a bound; 0 is none.
func (a *said) heuristic(cache string, most time.Duration) Verdict {
	if a.modified == nil {
		return no(cache, "nothing says for how long")
	}
	d := a.date.Sub(*a.modified) / 10
	if most > 0 {
		d = min(d, most)
	}
	return fresh(cache, d, a.age, "a tenth of its age, by Last-Modified")
}

// asks are what makes every browser ask again.
func (a *said) asks(cache string) (v Verdict, ok bool) {
	switch {
	case a.noStore:
		return no(cache, "no-store"), true
	case a.noCache:
		return no(cache, "no-cache"), true
	case a.varyAll:
		return no(cache, "Vary: *"), true
	}
	return v, false
}

func chromium(a *said) Verdict {
	const name = "Chromium"
	if v, ok := a.asks(name); ok {
		return v
	}
	if a.pragma {
		return no(name, "Pragma: no-cache")
	}
	if a.maxAge == nil && a.expires == "0" {
		return no(name, "Expires: 0")
	}
	if v, ok := a.explicit(name); ok {
		return v
	}
	switch a.status {
	case 200, 203, 206:
		if a.mustAsk {
			return no(name, "must-revalidate, and nothing says for how long")
		}
		return a.heuristic(name, 0)
	case 300, 301, 308, 410:
		return Verdict{name, true, Forever, fmt.Sprintf("a %d is taken for permanent, and nothing says otherwise", a.status)}
	}
	return no(name, fmt.Sprintf("nothing says for how long a %d may be kept", a.status))
}

func firefox(a *said) Verdict {
	const name = "Firefox"
	switch a.status {
	case 200, 203, 206, 301, 302, 303, 304, 307, 308, 410:
	default: // a 300 neither, whatever it says and with or without Location
		return no(name, fmt.Sprintf("a %d is never reused", a.status))
	}
	if v, ok := a.asks(name); ok {
		return v
	}
	if a.pragma {
		return no(name, "Pragma: no-cache")
	}
	if a.maxAge == nil && a.hasExpires && a.expiresAt == nil {
		return no(name, "an Expires that is no date is one in the past")
	}
	if a.negativeAge {
		return no(name, "a negative Age is a very large one")
	}
	if v, ok := a.explicit(name); ok {
		return v
	}
	if a.status == 410 { // also with Last-Modified
		return Verdict{name, true, Forever, "a 410 is taken for permanent, and nothing says otherwise"}
	}
	if temporary := a.status == 302 || a.status == 303 || a.status == 307; temporary && !a.public {
		return no(name, fmt.Sprintf("nothing says for how long a %d may be kept, nor that it is public", a.status))
	}
	return a.heuristic(name, 7*24*time.Hour)
}

func safari(a *said) Verdict {
	const name = "Safari"
	if v, ok := a.asks(name); ok {
		return v
	}
	if a.pragmaHas {
		return no(name, "Pragma: no-cache")
	}
	if v, ok := a.explicit(name); ok {
		return v
	}
	switch {
	case a.hasExpires:
		return no(name, "an Expires that is no date is one in the past")
	case a.status == 301 || a.status == 410:
		return fresh(name, 365*24*time.Hour, a.age, fmt.Sprintf("a %d is taken for permanent, and nothing says otherwise", a.status))
	}
	return a.heuristic(name, 0)
}

// varnishTTL is Varnish's default_ttl.
const varnishTTL = 2 * time.Minute

// varnishSkew is Varnish's clock_skew: a Date that is less away is taken for now.
const varnishSkew = 10 * time.Second

func varnish(a *said) Verdict {
	const name = "Varnish"
	explicitOnly := false
	switch a.status {
	case 200, 203, 204, 300, 301, 304, 404, 410, 414:
	case 302, 307:
		explicitOnly = true
	default:
		return no(name, fmt.Sprintf("a %d is not cached", a.status))
	}
	switch v, ok := a.forbidden(name); {
	case a.cookie:
		return no(name, "Set-Cookie")
	case ok:
		return v
	case a.authorized:
		return no(name, "the request has an Authorization")
	case a.sharedMaxAge == nil && a.maxAge == nil && a.expiresAt != nil && a.expiresAt.Unix() == 0:
		return fresh(name, varnishTTL, a.told, "its default; Expires at the epoch's second 0 is none for it")
	}
	from := a.date
	if a.now.Sub(from).Abs() < varnishSkew && a.expiresAt != nil && !a.expiresAt.Before(from) {
		from = a.now
	}
	if v, ok := a.sharedExplicit(name, from, a.told); ok {
		return v
	}
	if explicitOnly {
		return no(name, fmt.Sprintf("nothing says for how long a %d may be kept", a.status))
	}
	return fresh(name, varnishTTL, a.told, "its default, since nothing says otherwise")
}

// forbidden is what keeps every shared cache off.
func (a *said) forbidden(cache string) (v Verdict, ok bool) {
	switch {
	case a.noStore || a.noCache || a.private:
		return no(cache, "Cache-Control: "+a.forbids()), true
	case a.varyAll:
		return no(cache, "Vary: *"), true
	}
	return v, false
}

// sharedExplicit is what s-maxage says, and then what max-age or Expires do: see explicitOf.
func (a *said) sharedExplicit(cache string, from time.Time, age time.Duration) (v Verdict, ok bool) {
	if a.sharedMaxAge != nil {
		return a.explicitOf(cache, a.sharedMaxAge, "s-maxage", from, age)
	}
	return a.explicitOf(cache, a.maxAge, "max-age", from, age)
}

// forbids names the directive that keeps shared caches off.
func (a *said) forbids() string {
	switch {
	case a.noStore:
		return "no-store"
	case a.noCache:
		return "no-cache"
	}
	return "private"
}

func nginxCache(a *said) Verdict {
	const name = "nginx proxy_cache"
	if a.cookie {
		return no(name, "Set-Cookie")
	}
	if v, ok := a.forbidden(name); ok {
		return v
	}
	if v, ok := a.sharedExplicit(name, a.now, 0); ok {
		return v
	}
	return no(name, "nothing says for how long, and it has no default without proxy_cache_valid")
}

// heuristicallyCacheable are the statuses that a cache may keep though nobody says so (RFC
// 9110 section 15.1).
var heuristicallyCacheable = []int{200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}

func sharedCache(a *said) Verdict {
	const name = "other shared caches"
	if v, ok := a.forbidden(name); ok {
		return v
	}
	if a.authorized && !a.public && a.sharedMaxAge == nil && !a.mustAsk {
		return no(name, "the request has an Authorization")
	}
	if v, ok := a.sharedExplicit(name, a.date, a.age); ok {
		return v
	}
	switch {
	case a.hasExpires:
		return no(name, "an Expires that is no date is one in the past (RFC 9111 section 5.3)")
	case slices.Contains(heuristicallyCacheable, a.status):
		return Verdict{name, true, Forever, fmt.Sprintf("a %d may be kept as long as the cache sees fit (RFC 9111 section 4.2.2)", a.status)}
	case a.public:
		return Verdict{name, true, Forever, fmt.Sprintf("a %d that is public may be kept as long as the cache sees fit (RFC 9111 section 4.2.2)", a.status)}
	}
	return no(name, fmt.Sprintf("a %d is kept only where something says for how long, or that it is public", a.status))
}
