package wsupgrade

import (
	"fmt"
	"net/http"
	"strings"
)

// AllowOrigins returns a CheckOrigin that accepts, besides the site's own pages and clients
// that are not browsers, the pages of the origins. An origin is
//
//	scheme "://" host [ ":" port ]
//
// where scheme is http or https, and host is a name, "*." and a name, an IPv4 address, or
// an IPv6 address in brackets: "https://app.example", "http://[::1]:8080",
// "https://*.app.example". "*." stands for one or more whole labels: the last one accepts
// a.app.example and a.b.app.example, but neither app.example nor evilapp.example. Without a
// port it is the scheme's own. Case is ignored.
//
// It is an error if an origin is ambiguous ("https://*app.example"), can't be that of a page
// (a path, a leading or trailing dot, a name that is not written in punycode, as browsers do)
// or would accept every page ("*", "null"). The error names it.
func AllowOrigins(origins ...string) (func(*http.Request) bool, error) {
	allowed := make([]origin, len(origins))
	for i, s := range origins {
		o, err := parseOrigin(s, parseHostPattern)
		if err != nil {
			return nil, fmt.Errorf("wsupgrade: AllowOrigins: %q: %w", s, err)
		}
		allowed[i] = o
	}
	return func(r *http.Request) bool {
		if sameOrigin(r) {
			return true
		}
		values := r.Header["Origin"]
		if len(values) != 1 {
			return false
		}
		o, err := parseOrigin(values[0], parseHost)
		if err != nil {
			return false
		}
		for _, a := range allowed {
			if a.scheme == o.scheme && a.port == o.port && a.host.matches(o.host) {
				return true
			}
		}
		return false
	}, nil
}

// origin is a scheme, a host and a port (RFC 6454).
type origin struct {
	scheme string
	host   hostPattern
	port   string
}

// parseOrigin parses an origin, or a pattern of one. parse is called for its host.
func parseOrigin(s string, parse func(string) (hostPattern, error)) (o origin, err error) {
	scheme, rest, _ := strings.Cut(s, "://")
	switch o.scheme = strings.ToLower(scheme); o.scheme {
	case "http":
		o.port = "80"
	case "https":
		o.port = "443"
	default:
		return o, errNoScheme
	}
	host, port, found := cutPort(rest)
	if found {
		if !validPort(port) {
			return o, errPort
		}
		o.port = port
	}
	if strings.HasPrefix(host, "[") {
		o.host, err = parseBrackets(host)
		return o, err
	}
	if strings.Contains(host, ":") {
		return o, errBrackets
	}
	o.host, err = parse(host)
	return o, err
}

// cutPort cuts s after its host. A colon inside an IPv6 address begins no port.
func cutPort(s string) (host, port string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.Contains(s[:i], ":") && s[i-1] != ']' {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// validPort reports whether s is a port as browsers write it: without leading zeros.
func validPort(s string) bool {
	if s == "" || s[0] == '0' || len(s) > 5 || strings.Trim(s, "0123456789") != "" {
		return false
	}
	return len(s) < 5 || s <= "65535"
}

// parseHosts parses Options.Hosts. nil means any, and is kept.
func parseHosts(hosts []string) ([]hostPattern, error) {
	if hosts == nil {
		return nil, nil
	}
	patterns := make([]hostPattern, len(hosts))
	for i, s := range hosts {
		p, err := parseHostPattern(s)
		if err != nil {
			return nil, fmt.Errorf("wsupgrade: Hosts: %q: %w", s, err)
		}
		patterns[i] = p
	}
	return patterns, nil
}

// hostAllowed reports whether the Host field names one of the hosts. A page that makes its own name
// resolve to this server (DNS rebinding) has the same origin as its WebSocket; only the name gives
// it away.
func hostAllowed(hosts []hostPattern, field string) bool {
	if hosts == nil {
		return true
	}
	name, port, found := cutPort(field)
	if found && strings.Trim(port, "0123456789") != "" {
		return false
	}
	parse := parseHost
	if strings.HasPrefix(name, "[") {
		parse = parseBrackets
	}
	host, err := parse(name)
	if err != nil {
		return false
	}
	for _, h := range hosts {
		if h.matches(host) {
			return true
		}
	}
	return false
}
