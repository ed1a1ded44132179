package proxy

import (
	"slices"
	"strings"
)

// CookieRewrite says how the cookies that a target sets are changed for clients.
// A nil function leaves its attribute as it is.
type CookieRewrite struct {
	// Only says which cookies are changed, by their names; nil means all.
	Only func(name string) bool
	// Domain gets a cookie's Domain and returns the one to send; "" takes the
	// attribute away, so that the cookie is for this host alone.
	Domain func(domain string) string
	// Path gets a cookie's Path and returns the one to send; "" takes the
	// attribute away.
	Path func(path string) string
	// Remove are names of attributes that are taken away first. "SameSite" beside
	// SameSite replaces what is there.
	Remove []string
	// Secure, HTTPOnly and SameSite set the attributes where they are not there.
	// SameSite is "Strict", "Lax" or "None"; "" leaves it.
	Secure, HTTPOnly bool
	SameSite         string
}

// RewriteCookies changes each Set-Cookie. Names, values and attributes that are
// not asked for stay byte for byte, also those that Go would not read as a
// cookie.
func (a *Response) RewriteCookies(c CookieRewrite) {
	for i, line := range a.Header["Set-Cookie"] {
		a.Header["Set-Cookie"][i] = c.rewrite(line)
	}
}

func (c CookieRewrite) rewrite(line string) string {
	parts := strings.Split(line, ";")
	if name, _, _ := strings.Cut(parts[0], "="); c.Only != nil && !c.Only(strings.TrimSpace(name)) {
		return line
	}
	kept := parts[:1]
	has := map[string]bool{}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case name == "samesite" && c.SameSite != "" && c.removes(name):
			part = " SameSite=" + c.SameSite
		case c.removes(name):
			continue
		}
		has[name] = true
		if changed, ok := c.attribute(name, strings.TrimSpace(value)); ok {
			if changed == "" {
				continue
			}
			label, _, _ := strings.Cut(part, "=")
			part = label + "=" + changed
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

func (c CookieRewrite) removes(name string) bool {
	return slices.ContainsFunc(c.Remove, func(r string) bool { return strings.EqualFold(r, name) })
}

// attribute returns the value that an attribute has now, "" for none; ok is false if
// it stays as it is.
func (c CookieRewrite) attribute(name, value string) (changed string, ok bool) {
	var f func(string) string
	switch name {
	case "domain":
		f = c.Domain
	case "path":
		f = c.Path
	}
	if f == nil {
		return "", false
	}
	return f(value), true
}
