package engine

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
	"github.com/culvert-go/culvert/proxy"
)

// cookieRule replaces a cookie's Domain or Path.
type cookieRule struct {
	from vars.Value
	re   *pcre.Regexp // instead of from
	to   vars.Value
}

// flagRule is one proxy_cookie_flags.
type flagRule struct {
	name  vars.Value
	re    *pcre.Regexp // instead of name
	flags []vars.Value
}

func (f *family) cookieDomain(c *compiler, l *level, d *conf.Directive) error {
	return cookieRules(c, l, d, &f.slot.edit(l).cookieDomains)
}

func (f *family) cookiePath(c *compiler, l *level, d *conf.Directive) error {
	return cookieRules(c, l, d, &f.slot.edit(l).cookiePaths)
}

// cookieRules compiles "name off" and "name from to".
func cookieRules(c *compiler, l *level, d *conf.Directive, rules *[]cookieRule) (err error) {
	if err := offAlone(l, d, len(d.Args) == 1 && d.Args[0] == "off"); err != nil {
		return err
	}
	if l.first(d.Name) {
		*rules = nil
	}
	if len(d.Args) == 1 {
		if d.Args[0] != "off" {
			return d.Errorf("invalid parameter \"%s\"", d.Args[0])
		}
		*rules = nil
		return nil
	}
	var rule cookieRule
	from := d.Args[0]
	if strings.HasSuffix(d.Name, "_cookie_domain") {
		from = strings.TrimPrefix(from, ".")
	}
	if text, _, ok := namePattern(d.Args[0]); ok {
		if rule.re, err = pattern(d, text, strings.HasSuffix(d.Name, "_cookie_domain") || strings.HasPrefix(d.Args[0], "~*")); err != nil {
			return err
		}
	} else if rule.from, err = c.value(d, from); err != nil {
		return err
	}
	to := d.Args[1]
	if rule.re == nil && strings.HasSuffix(d.Name, "_cookie_domain") {
		to = strings.TrimPrefix(to, ".") // the cookie's own leading dot is kept
	}
	if rule.to, err = c.value(d, to); err != nil {
		return err
	}
	*rules = append(*rules, rule)
	return nil
}

// cookieFlags compiles "proxy_cookie_flags off|cookie [flag ...]".
func (f *family) cookieFlags(c *compiler, l *level, d *conf.Directive) (err error) {
	if err := offAlone(l, d, len(d.Args) == 1 && d.Args[0] == "off"); err != nil {
		return err
	}
	s := f.slot.edit(l)
	if l.first(d.Name) {
		s.cookieFlags = nil
	}
	if len(d.Args) == 1 && d.Args[0] == "off" {
		s.cookieFlags = nil
		return nil
	}
	if len(d.Args) == 1 {
		return d.Errorf("invalid parameter \"%s\"", d.Args[0])
	}
	var rule flagRule
	if text, ok := strings.CutPrefix(d.Args[0], "~"); ok {
		if rule.re, err = pattern(d, text, true); err != nil {
			return err
		}
	} else if rule.name, err = c.value(d, d.Args[0]); err != nil {
		return err
	}
	for _, arg := range d.Args[1:] {
		flag, err := c.value(d, arg)
		if err != nil {
			return err
		}
		if text, constant := flag.Literal(); constant && !addCookieFlag(&proxy.CookieRewrite{}, text) {
			return d.Errorf("invalid parameter \"%s\"", arg)
		}
		rule.flags = append(rule.flags, flag)
	}
	s.cookieFlags = append(s.cookieFlags, rule)
	return nil
}

// change returns what the rule does to a cookie of x's response. It reports whether any flag is valid.
func (rule *flagRule) change(x *exchange) (c proxy.CookieRewrite, any bool) {
	for _, v := range rule.flags {
		switch flag := v.String(&x.Request); {
		case flag == "":
		case addCookieFlag(&c, flag):
			any = true
		default:
			x.logAt(slog.LevelDebug, "invalid proxy_cookie_flags flag \""+flag+"\"", "")
		}
	}
	return c, any
}

// addCookieFlag adds a flag of proxy_cookie_flags to c. It reports whether there is such a flag.
func addCookieFlag(c *proxy.CookieRewrite, flag string) bool {
	switch flag = strings.ToLower(flag); flag {
	case "secure":
		c.Secure = true
	case "httponly":
		c.HTTPOnly = true
	case "samesite", "samesite=strict":
		c.SameSite = "Strict"
	case "samesite=lax":
		c.SameSite = "Lax"
	case "samesite=none":
		c.SameSite = "None"
	case "nosecure", "nohttponly", "nosamesite":
		c.Remove = append(c.Remove, flag[len("no"):])
	default:
		return false
	}
	if c.SameSite != "" {
		c.Remove = append(c.Remove, "samesite") // it replaces the existing one
	}
	return true
}

// rewriteCookies applies the first matching rule of each directive. The cookies are rewritten one by
// one, because variables of a rule's flags may be captures of its cookie's name.
func (s *proxySettings) rewriteCookies(x *exchange, a *proxy.Response) {
	if a.Header["Set-Cookie"] == nil || len(s.cookieDomains)+len(s.cookiePaths)+len(s.cookieFlags) == 0 {
		return
	}
	cookies := slices.Clone(a.Header["Set-Cookie"]) // $upstream_http_set_cookie must not change
	a.Header["Set-Cookie"] = cookies
	for i := range cookies {
		s.rewriteCookie(x, cookies[i:i+1])
	}
}

// rewriteCookie rewrites the only one of the cookies. As in nginx, it is written anew, its attributes
// separated by "; ", if a rule applies to it; else its bytes are kept.
func (s *proxySettings) rewriteCookie(x *exchange, cookie []string) {
	applies := false
	one := proxy.Response{Header: http.Header{"Set-Cookie": cookie}}
	attribute := func(rules []cookieRule, value string, cut func(value, from string) (before, rest string, ok bool)) string {
		changed, ok := cookieAttribute(x, rules, value, cut)
		applies = applies || ok
		return changed
	}
	rewrite := proxy.CookieRewrite{
		Domain: func(domain string) string { return attribute(s.cookieDomains, domain, sameDomain) },
		Path:   func(path string) string { return attribute(s.cookiePaths, path, samePath) },
	}
	one.RewriteCookies(rewrite)
	pair, _, _ := strings.Cut(cookie[0], ";")
	name, _, _ := strings.Cut(pair, "=")
	name = strings.TrimSpace(name)
	if i := slices.IndexFunc(s.cookieFlags, func(rule flagRule) bool { return rule.fits(x, name) }); i >= 0 {
		flags, any := s.cookieFlags[i].change(x)
		one.RewriteCookies(flags)
		applies = applies || any
	}
	if applies {
		cookie[0] = tidyCookie(cookie[0])
	}
}

// tidyCookie removes the blanks around the names and values of a cookie and separates them by "; ".
func tidyCookie(cookie string) string {
	parts := strings.Split(cookie, ";")
	for i, part := range parts {
		name, value, has := strings.Cut(part, "=")
		if parts[i] = strings.Trim(name, " "); has {
			parts[i] += "=" + strings.Trim(value, " ")
		}
	}
	return strings.Join(parts, "; ")
}

// sameDomain compares a whole domain, except for a leading dot, which it returns.
func sameDomain(domain, from string) (dot, rest string, ok bool) {
	name := strings.TrimPrefix(domain, ".")
	return domain[:len(domain)-len(name)], "", strings.EqualFold(name, from)
}

func samePath(path, from string) (before, rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, from)
	return "", rest, ok
}

// cookieAttribute applies the first of the rules that fits value, and reports whether one does.
func cookieAttribute(x *exchange, rules []cookieRule, value string, cut func(value, from string) (before, rest string, ok bool)) (string, bool) {
	for _, rule := range rules {
		if rule.re != nil {
			if groups := x.match(rule.re, value); groups != nil {
				x.Capture(groups, rule.re.Names())
				return rule.to.String(&x.Request), true
			}
			continue
		}
		if before, rest, ok := cut(value, rule.from.String(&x.Request)); ok {
			return before + rule.to.String(&x.Request) + rest, true
		}
	}
	return value, false
}

func (rule *flagRule) fits(x *exchange, name string) bool {
	if rule.re != nil {
		groups := x.match(rule.re, name)
		if groups != nil {
			x.Capture(groups, rule.re.Names())
		}
		return groups != nil
	}
	return strings.EqualFold(rule.name.String(&x.Request), name)
}
