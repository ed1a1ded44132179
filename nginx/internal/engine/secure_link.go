package engine

import (
	"crypto/md5"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// secureLinkModule defines $secure_link (ngx_http_secure_link_module.c).
var secureLinkModule = module{
	directives: []directive{
		{name: "secure_link", compile: secureLink},
		{name: "secure_link_md5", compile: secureLink},
		{name: "secure_link_secret", compile: secureLinkSecret},
	},
	variables: map[string]variable{"secure_link": nonEmpty(secureLinkOf), "secure_link_expires": nonEmpty(secureLinkExpires)},
}

var secureLinkSlot = newSlot(secureLinkRule{})

// secureLinkRule defines a valid link (ngx_http_secure_link_module.c): one whose hash is that of
// sum or, with a secret, one whose path contains the hash. A nil field is not configured.
type secureLinkRule struct {
	link, sum *vars.Value
	secret    *string
}

// secureLink compiles "secure_link text" and "secure_link_md5 text". Both replace an inherited
// secret.
func secureLink(c *compiler, l *level, d *conf.Directive) error {
	v, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	l.first("secure_link")
	if l.set["secure_link_secret"] && l.server != nil {
		return mixedSecureLink(d)
	}
	rule := secureLinkSlot.edit(l)
	rule.secret = nil
	if d.Name == "secure_link" {
		rule.link = &v
	} else {
		rule.sum = &v
	}
	return nil
}

// secureLinkSecret compiles "secure_link_secret word". On http's level nginx accepts it beside
// secure_link and secure_link_md5, which are then the ones that are inherited.
func secureLinkSecret(_ *compiler, l *level, d *conf.Directive) error {
	l.first("secure_link_secret")
	switch {
	case !l.set["secure_link"]:
		*secureLinkSlot.edit(l) = secureLinkRule{secret: &d.Args[0]}
	case l.server != nil:
		return mixedSecureLink(d)
	}
	return nil
}

func mixedSecureLink(d *conf.Directive) error {
	return d.Errorf("\"secure_link_secret\" cannot be mixed with \"secure_link\" and \"secure_link_md5\"")
}

// linkState holds the values of $secure_link and $secure_link_expires at their first use. They
// are kept when the request is redirected.
type linkState struct {
	link, expires           string
	linkKnown, expiresKnown bool
	until                   string // when the link expires, once it has been checked; "" after a redirect
}

// join takes over the values that a finished subrequest was the first to use.
func (s *linkState) join(sub linkState) {
	sub.until = s.until
	*s = sub
}

func secureLinkOf(x *exchange) string {
	s := &x.link
	if !s.linkKnown {
		s.link = secureLinkSlot.of(x.level).check(&x.Request, &s.until)
		s.linkKnown = true
	}
	return s.link
}

// secureLinkExpires returns "" if it is used before $secure_link, as in nginx.
func secureLinkExpires(x *exchange) string {
	if s := &x.link; !s.expiresKnown {
		s.expires, s.expiresKnown = s.until, true
	}
	return x.link.expires
}

// check returns $secure_link for a request. It sets expires to the time until which the link is valid, as it was sent, before it
// evaluates secure_link_md5, which may contain $secure_link_expires.
func (s secureLinkRule) check(r *vars.Request, expires *string) string {
	*expires = ""
	switch {
	case s.secret != nil:
		return secretLink(r.RequestURI, *s.secret)
	case s.link == nil || s.sum == nil:
		return ""
	}
	text, end, limited := strings.Cut(s.link.String(r), ",")
	until, ok := linkTime(end)
	if limited && !ok {
		return ""
	}
	*expires = end
	hash, ok := linkHash(text)
	if !ok {
		return ""
	}
	if sum := md5.Sum([]byte(s.sum.String(r))); subtle.ConstantTimeCompare(hash, sum[:]) == 0 {
		return ""
	}
	if limited && until < time.Now().Unix() {
		return "0"
	}
	return "1"
}

// linkTime parses seconds since 1970: digits only, without a sign (ngx_atotm).
func linkTime(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && text[0] != '+'
}

// linkHash decodes a hash in base64url as nginx does, ignoring what follows a "=".
func linkHash(text string) ([]byte, bool) {
	if len(text) > 24 || strings.ContainsAny(text, "\r\n") { // which Go's decoder would skip
		return nil, false
	}
	text, _, _ = strings.Cut(text, "=")
	hash, err := base64.RawURLEncoding.DecodeString(text)
	return hash, err == nil && len(hash) == md5.Size
}

// secretLink returns the link in "/prefix/hash/link" if the hash is that of the link and the
// secret.
func secretLink(uri, secret string) string {
	if uri == "" {
		return ""
	}
	_, rest, _ := strings.Cut(uri[1:], "/")
	text, link, _ := strings.Cut(rest, "/")
	hash, err := hex.DecodeString(text)
	sum := md5.Sum([]byte(link + secret))
	if err != nil || subtle.ConstantTimeCompare(hash, sum[:]) == 0 {
		return ""
	}
	return link
}
