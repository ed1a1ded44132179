package proxy

import (
	"net/url"
	"regexp"
	"strings"
)

// StripPrefix takes prefix away from the beginning of the path, as the client
// wrote it, escapes included, and makes sure that what is left begins with a
// slash. It says whether the path had the prefix, as a whole segment: "/api" is
// a prefix of "/api/x" and of "/api", not of "/apis".
func (o *Outbound) StripPrefix(prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	raw := rawPath(o.Out.URL)
	rest, ok := strings.CutPrefix(raw, prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return false
	}
	if rest == "" {
		rest = "/"
	}
	o.setRawPath(rest)
	return true
}

// AddPrefix puts prefix, escaped as it is to be sent, before the path.
func (o *Outbound) AddPrefix(prefix string) {
	o.setRawPath(strings.TrimSuffix(prefix, "/") + rawPath(o.Out.URL))
}

// RewritePath replaces what re matches in the path, as the client wrote it,
// escapes included, by replacement, as Regexp.ReplaceAllString does. It says
// whether it matched.
func (o *Outbound) RewritePath(re *regexp.Regexp, replacement string) bool {
	raw := rawPath(o.Out.URL)
	if !re.MatchString(raw) {
		return false
	}
	rewritten := re.ReplaceAllString(raw, replacement)
	if !strings.HasPrefix(rewritten, "/") {
		rewritten = "/" + rewritten
	}
	o.setRawPath(rewritten)
	return true
}

// setRawPath makes raw, which is escaped, the path. What can't be decoded goes
// out as it is all the same.
func (o *Outbound) setRawPath(raw string) {
	u := o.Out.URL
	u.Opaque = ""
	path, err := url.PathUnescape(raw)
	if err != nil {
		path, u.Opaque = raw, raw
	}
	u.Path, u.RawPath = path, raw
}

// SetHost makes host the Host field that the target sees; "" means the target's
// address. Without it the target sees the client's.
func (o *Outbound) SetHost(host string) { o.Out.Host = host }
