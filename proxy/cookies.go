package proxy

import (
	"strings"
)

// CookieRewrite says how the cookies that a target sets are changed for clients.
// A nil function leaves its attribute as it is.
type CookieRewrite struct {
	// Domain gets a cookie's Domain and returns the one to send; "" takes the
	// attribute away, so that the cookie is for this host alone.
	Domain func(domain string) string
	// Path gets a cookie's Path and returns the one to send; "" takes the
	// attribute away.
	Path func(path string) string
	// Secure, HTTPOnly and SameSite set the attributes where they are not there.
	// SameSite is "Strict", "Lax" or "None"; "" leaves it.
	Secure, HTTPOnly bool
	SameSite         string
}

// RewriteCookies changes each Set-Cookie. Names, values and attributes that are
// not asked for stay byte for byte, also those that Go would not read as a
// cookie.
func (a *Answer) RewriteCookies(c CookieRewrite) {
	for i, line := range a.Header["Set-Cookie"] {
		a.Header["Set-Cookie"][i] = c.rewrite(line)
	}
}

func (c CookieRewrite) rewrite(line string) string {
	parts := strings.Split(line, ";")
	kept := parts[:1]
	has := map[string]bool{}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.ToLower(strings.TrimSpace(name))
		has[name] = true
		if replaced, ok := c.attribute(name, strings.TrimSpace(value)); ok {
			if replaced == "" {
				continue
			}
			part = replaced
		}
		kept = append(kept, part)
	}
	if c.Secure && !has["secure"] {
		kept = append(kept, " Secure")
	}
	if c.HTTPOnly && !has["httponly"] {
		kept = append(kept, " HttpOnly")
	}
	if c.SameSite != "" && !has["samesite"] {
		kept = append(kept, " SameSite="+c.SameSite)
	}
	return strings.Join(kept, ";")
}

// attribute returns what stands for an attribute now, "" for nothing; ok is false
// if it stays as it is.
func (c CookieRewrite) attribute(name, value string) (replaced string, ok bool) {
	var f func(string) string
	var label string
	switch name {
	case "domain":
		f, label = c.Domain, " Domain="
	case "path":
		f, label = c.Path, " Path="
	}
	if f == nil {
		return "", false
	}
	if changed := f(value); changed != "" {
		return label + changed, true
	}
	return "", true
}
