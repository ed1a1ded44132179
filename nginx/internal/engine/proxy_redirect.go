package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// redirectRule replaces the beginning of an upstream's Location, or all of it
// if re is set.
type redirectRule struct {
	from     vars.Value
	re       *pcre.Regexp
	to       vars.Value
	standard bool // "default": from and to follow from proxy_pass
}

// redirect compiles "proxy_redirect default", "off" and "from to".
func (f *family) redirect(c *compiler, l *level, d *conf.Directive) error {
	if err := offAlone(l, d, len(d.Args) == 1 && d.Args[0] == "off"); err != nil {
		return err
	}
	s := f.slot.edit(l)
	if l.first(d.Name) {
		s.redirects = nil
	}
	s.redirectGiven = true
	if len(d.Args) == 1 {
		switch d.Args[0] {
		case "off", "false":
			s.redirects = nil
			return nil
		case "default":
			s.redirects = append(s.redirects, redirectRule{standard: true})
			return nil
		}
		return d.Errorf("invalid parameter \"%s\"", d.Args[0])
	}
	var rule redirectRule
	var err error
	if text, noCase, ok := namePattern(d.Args[0]); ok {
		if rule.re, err = pattern(d, text, noCase); err != nil {
			return err
		}
	} else if rule.from, err = c.value(d, d.Args[0]); err != nil {
		return err
	}
	if rule.to, err = c.value(d, d.Args[1]); err != nil {
		return err
	}
	s.redirects = append(s.redirects, rule)
	return nil
}

// offAlone refuses an "off" beside other directives of its name: nginx calls the later one a
// duplicate.
func offAlone(l *level, d *conf.Directive, off bool) error {
	if l.set[d.Name+" off"] || off && l.set[d.Name] {
		return d.Errorf("\"%s\" directive is duplicate", d.Name)
	}
	if off {
		l.first(d.Name + " off")
	}
	return nil
}

// finishRedirects fills in the default once proxy_pass is known: its URL
// becomes the location's name.
func (p *passRule) finishRedirects() error {
	s := p.family.slot.edit(p.level)
	if !s.redirectGiven && p.url != "" && p.family.uris {
		s.redirects = []redirectRule{{standard: true}}
	}
	rules := make([]redirectRule, 0, len(s.redirects))
	for _, rule := range s.redirects {
		if rule.standard {
			if p.url == "" {
				return p.at.Errorf("\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables")
			}
			rule = redirectRule{from: vars.Constant(p.url + "/"), to: vars.Constant("/")}
			if p.hasURI {
				rule = redirectRule{from: vars.Constant(p.url + p.uri), to: vars.Constant(p.level.name)}
			}
		}
		rules = append(rules, rule)
	}
	s.redirects = rules
	return nil
}

// rewriteRedirects applies the first matching rule to Location and to the URL of Refresh. A
// result that is a path becomes absolute, as the server's own redirects do.
func (s *proxySettings) rewriteRedirects(x *exchange, h http.Header) {
	if location := h.Get("Location"); location != "" {
		if to, ok := s.rewriteRedirect(x, location); ok {
			x.madeAbsolute = redirectSlot.of(x.level).absolute && strings.HasPrefix(to, "/")
			h.Set("Location", absoluteURL(x, to))
		}
	}
	if refresh := h.Get("Refresh"); refresh != "" {
		if i := strings.Index(strings.ToLower(refresh), "url="); i >= 0 {
			if to, ok := s.rewriteRedirect(x, refresh[i+4:]); ok {
				h.Set("Refresh", refresh[:i+4]+to)
			}
		}
	}
}

func (s *proxySettings) rewriteRedirect(x *exchange, location string) (string, bool) {
	for _, rule := range s.redirects {
		if rule.re != nil {
			groups := x.match(rule.re, location)
			if groups == nil {
				continue
			}
			x.Capture(groups, rule.re.Names())
			return rule.to.String(&x.Request), true
		}
		if rest, ok := strings.CutPrefix(location, rule.from.String(&x.Request)); ok {
			return rule.to.String(&x.Request) + rest, true
		}
	}
	return "", false
}
