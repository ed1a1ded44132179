package proxy

import (
	"net/url"
	"regexp"
	"strings"
)

// StripPrefix removes prefix from the beginning of the path as the client wrote it, escapes
// included, and makes the rest begin with a slash. It reports whether the path had the prefix
// as whole segments: "/api" is a prefix of "/api/x" and of "/api", but not of "/apis".
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

// AddPrefix inserts prefix before the path. It must be escaped.
func (o *Outbound) AddPrefix(prefix string) {
	o.setRawPath(strings.TrimSuffix(prefix, "/") + rawPath(o.Out.URL))
}

// RewritePath replaces all matches of re in the path as the client wrote it, escapes included,
// by replacement, as Regexp.ReplaceAllString does. It reports whether there was a match.
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

// setRawPath makes raw, which is escaped, the path. If it can't be decoded, it is sent unchanged.
func (o *Outbound) setRawPath(raw string) {
	u := o.Out.URL
	u.Opaque = ""
	path, err := url.PathUnescape(raw)
	if err != nil {
		path, u.Opaque = raw, raw
	}
	u.Path, u.RawPath = path, raw
}
