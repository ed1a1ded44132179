package wsupgrade

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// AllowOrigins returns a CheckOrigin that lets in, beside the site's own pages and
// clients that are no browsers, the pages of the origins: "https://app.example", with a
// port where it is not the scheme's own, or "https://*.app.example" for every name
// below. "null" and "*" are errors: what they would let in is anybody.
func AllowOrigins(origins ...string) (func(*http.Request) bool, error) {
	allowed := make([]origin, len(origins))
	for i, s := range origins {
		o, ok := parseOrigin(s)
		if !ok || o.host == "*" {
			return nil, fmt.Errorf("wsupgrade: AllowOrigins: %q is no origin", s)
		}
		allowed[i] = o
	}
	return func(r *http.Request) bool {
		if sameOrigin(r) {
			return true
		}
		fields := r.Header["Origin"]
		if len(fields) != 1 {
			return false
		}
		o, ok := parseOrigin(fields[0])
		if !ok || strings.Contains(o.host, "*") {
			return false
		}
		for _, a := range allowed {
			if a.covers(o) {
				return true
			}
		}
		return false
	}, nil
}

// origin is a scheme, a host and a port (RFC 6454).
type origin struct{ scheme, host, port string }

func parseOrigin(s string) (origin, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return origin{}, false
	}
	o := origin{strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()}
	switch {
	case o.scheme != "http" && o.scheme != "https":
		return o, false
	case o.port == "" && o.scheme == "http":
		o.port = "80"
	case o.port == "":
		o.port = "443"
	}
	return o, true
}

func (o origin) covers(other origin) bool {
	return o.scheme == other.scheme && o.port == other.port && covers(o.host, other.host)
}

// covers says whether name is pattern, or below it where that begins with "*.".
func covers(pattern, name string) bool {
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(name, below) && len(name) > len(below)
	}
	return pattern == name
}

// checkHosts checks Options.Hosts.
func checkHosts(hosts []string) error {
	for _, h := range hosts {
		if name := strings.TrimPrefix(h, "*."); name == "" || strings.ContainsAny(name, "*/@ ") {
			return fmt.Errorf("wsupgrade: Hosts: %q is no host", h)
		}
	}
	return nil
}

// knows says whether the Host field names one of the hosts. A page that lets its own
// name lead to this server (DNS rebinding) is of the same origin as its WebSocket; only
// the name tells.
func knows(hosts []string, field string) bool {
	if hosts == nil {
		return true
	}
	name, _, err := net.SplitHostPort(field)
	if err != nil {
		name = field
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	for _, h := range hosts {
		if covers(strings.ToLower(h), name) {
			return true
		}
	}
	return false
}
