package proxy

import (
	"net/url"
	"strings"

	"github.com/culvert-go/culvert/internal/client"
)

// ReplaceLocation replaces from at the beginning of Location, of Refresh's url and
// of Content-Location by to, as nginx's proxy_redirect does for the first two:
// ReplaceLocation("http://app:8080/", "/app/").
func (a *Response) ReplaceLocation(from, to string) {
	a.mapLocations(func(location string) string {
		if rest, ok := strings.CutPrefix(location, from); ok {
			return to + rest
		}
		return location
	})
}

// FixLocation makes Location, Refresh and Content-Location that refer to the target refer to
// this gateway. An absolute reference whose host is the Host that was sent to the target, or the
// target's address, gets the scheme and the host of the client's request. Other references,
// relative ones too, are kept.
func (a *Response) FixLocation() {
	scheme, host := a.clientOrigin()
	a.mapLocations(func(location string) string {
		u, err := url.Parse(location)
		if err != nil || u.Host == "" || !a.isTarget(u.Host) {
			return location
		}
		// The bytes behind the authority are kept as they are.
		_, rest, _ := strings.Cut(location, "//")
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			return scheme + "://" + host + rest[i:]
		}
		return scheme + "://" + host
	})
}

func (a *Response) clientOrigin() (scheme, host string) {
	scheme, host = "http", a.In.Host
	if a.In.TLS != nil {
		scheme = "https"
	}
	if i := client.From(a.In.Context()); i != nil {
		override(&scheme, i.Proto)
		override(&host, i.Host)
	}
	return scheme, host
}

// isTarget reports whether the host of a reference is the Host that was sent to the target, or
// its address.
func (a *Response) isTarget(host string) bool {
	return strings.EqualFold(host, a.Out.URL.Host) || a.Out.Host != "" && strings.EqualFold(host, a.Out.Host)
}

func (a *Response) mapLocations(f func(string) string) {
	for _, name := range [...]string{"Location", "Content-Location"} {
		if v := a.Header[name]; len(v) > 0 {
			v[0] = f(v[0])
		}
	}
	if v := a.Header["Refresh"]; len(v) > 0 {
		v[0] = mapRefresh(v[0], f)
	}
}

// mapRefresh changes the reference in "5; url=http://...". Quotes are kept.
func mapRefresh(v string, f func(string) string) string {
	i := strings.Index(strings.ToLower(v), "url=")
	if i < 0 {
		return v
	}
	i += len("url=")
	location, quote := v[i:], ""
	if location != "" && (location[0] == '"' || location[0] == '\'') {
		quote = location[:1]
		location = strings.TrimSuffix(location[1:], quote)
	}
	return v[:i] + quote + f(location) + quote
}
