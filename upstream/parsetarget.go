package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// ParseTarget returns the Target that s names: a URL, "https://host:8443/base" for instance, whose scheme, address and path
// it has, or an Addr, "host:port" or "unix:/path". Without a port that of the scheme is meant. An error says what to write
// instead; it does not show a password.
func ParseTarget(s string) (Target, error) {
	fail := func(err error) (Target, error) {
		return Target{}, fmt.Errorf("upstream: target %q: %w", redacted(s), err)
	}
	if !strings.Contains(s, "://") {
		if err := checkAddr(s); err != nil {
			return fail(err)
		}
		return Target{Addr: s}, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return fail(errors.Unwrap(err))
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fail(fmt.Errorf("scheme %q: write http:// or https://, for WebSockets, too", u.Scheme))
	case u.User != nil:
		return fail(errors.New("a user in the URL: set Authorization in proxy.Options.Rewrite"))
	case u.RawQuery != "" || u.ForceQuery:
		return fail(errors.New("a query in the URL: set Out.URL.RawQuery in proxy.Options.Rewrite"))
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return fail(errors.New("a fragment in the URL, which is never sent"))
	case u.Host == "":
		return fail(fmt.Errorf("write %s://host:port/path", u.Scheme))
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	t := Target{Addr: net.JoinHostPort(u.Hostname(), port), Scheme: u.Scheme, Path: strings.TrimSuffix(u.EscapedPath(), "/")}
	if err := checkAddr(t.Addr); err != nil {
		return fail(err)
	}
	if err := checkBasePath(t.Path); err != nil {
		return fail(err)
	}
	return t, nil
}

// redacted returns s, a URL or an address, without what may be a password.
func redacted(s string) string {
	if strings.HasPrefix(s, unixPrefix) {
		return s
	}
	scheme, rest, isURL := strings.Cut(s, "://")
	if !isURL {
		scheme, rest = "", s
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && isURL {
		end = i
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		rest = "xxxxx" + rest[at:]
	}
	if isURL {
		scheme += "://"
	}
	return scheme + rest
}
