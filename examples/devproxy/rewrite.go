package main

import (
	"net/url"
	"strings"

	"github.com/culvert-go/culvert/proxy"
)

// rewrite applies a rule to the outbound request.
func (r *compiled) rewrite(out *proxy.Outbound, t *target) {
	for _, p := range r.paths {
		if out.RewritePath(p.re, p.with) {
			break // the first one that matches, as in http-proxy-middleware
		}
	}
	if base := t.url.EscapedPath(); base != "" && base != "/" {
		out.AddPrefix(base)
	}
	if r.ChangeOrigin {
		out.Out.Host = t.url.Host
	}
	if r.XFwd {
		out.SetXForwarded()
	}
	if user, password, ok := strings.Cut(r.Auth, ":"); ok {
		out.Out.SetBasicAuth(user, password)
	}
	for _, h := range r.Headers {
		out.Out.Header.Set(h.key, h.value)
	}
}

// modifyResponse rewrites the target's own addresses in a response.
func (r *compiled) modifyResponse(a *proxy.Response, t *target) {
	if r.AutoRewrite || r.HostRewrite != "" || r.ProtocolRewrite != "" {
		r.rewriteLocation(a, t)
	}
	c := proxy.CookieRewrite{}
	if r.CookieDomainRewrite != nil {
		c.Domain = r.CookieDomainRewrite.lookup
	}
	if r.CookiePathRewrite != nil {
		c.Path = r.CookiePathRewrite.lookup
	}
	if c.Domain != nil || c.Path != nil {
		a.RewriteCookies(c)
	}
}

// rewriteLocation rewrites redirects that lead to the target itself.
func (r *compiled) rewriteLocation(a *proxy.Response, t *target) {
	switch a.Status {
	case 201, 301, 302, 303, 307, 308:
	default:
		return
	}
	u, err := url.Parse(a.Header.Get("Location"))
	if err != nil || !strings.EqualFold(u.Host, t.url.Host) {
		return
	}
	switch {
	case r.HostRewrite != "":
		u.Host = r.HostRewrite
	case r.AutoRewrite:
		u.Host = a.In.Host
	}
	if r.ProtocolRewrite != "" {
		u.Scheme = r.ProtocolRewrite
	}
	a.Header.Set("Location", u.String())
}

// lookup returns the replacement of a value: its own entry, or that of "*", or itself.
func (p *pairs) lookup(value string) string {
	star, found := value, false
	for _, entry := range *p {
		switch entry.key {
		case value:
			return entry.value
		case "*":
			if !found {
				star, found = entry.value, true
			}
		}
	}
	return star
}
