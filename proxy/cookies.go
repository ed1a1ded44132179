package proxy

import (
	"slices"
	"strings"
)

// CookieRewrite configures how the cookies that a target sets are changed for clients. If a
// function is nil, its attribute is kept.
type CookieRewrite struct {
	// Only reports whether cookies of the name are changed; nil means all are.
	Only func(name string) bool
	// Domain is called with a cookie's Domain and returns the one to send. "" removes the
	// attribute, so that the cookie is for this host only.
	Domain func(domain string) string
	// Path is called with a cookie's Path and returns the one to send. "" removes the
	// attribute.
	Path func(path string) string
	// Remove holds the names of attributes that are removed first. With "SameSite" in it, the
	// field SameSite replaces an existing attribute.
	Remove []string
	// Secure, HTTPOnly and SameSite add the attributes that are missing. SameSite is "Strict",
	// "Lax" or "None"; "" adds none.
	Secure, HTTPOnly bool
	SameSite         string
}

// RewriteCookies changes each Set-Cookie. Names, values and attributes that c does not change
// are kept byte for byte, also those that Go would not parse as a cookie.
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

// attribute returns the new value of an attribute, "" for none. If ok is false, the attribute
// is kept.
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
