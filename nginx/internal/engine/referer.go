package engine

import (
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// refererModule defines $invalid_referer (ngx_http_referer_module.c).
var refererModule = module{
	directives: []directive{
		{name: "valid_referers", repeatable: true, compile: validReferers},
	},
	variables: map[string]variable{"invalid_referer": nonEmpty(invalidReferer)},
	merge:     verifyReferers,
}

var refererSlot = newSlot(refererRule{})

// refererRule is valid_referers, which makes $invalid_referer
// (ngx_http_referer_module.c).
type refererRule struct {
	given       bool
	none        bool // a request without the field is valid
	blocked     bool // so is a value that is no URL
	serverNames bool
	names       *route.Names[string] // to what the path must begin with
	patterns    []*pcre.Regexp
}

// validReferers compiles "valid_referers none|blocked|server_names|name|~regex ...".
func validReferers(_ *compiler, l *level, d *conf.Directive) error {
	r := refererSlot.edit(l)
	if l.first("valid_referers") {
		*r = refererRule{given: true, names: route.NewNames[string]()}
	}
	for _, arg := range d.Args {
		switch {
		case arg == "none":
			r.none = true
		case arg == "blocked":
			r.blocked = true
		case arg == "server_names":
			r.serverNames = true
		case strings.HasPrefix(arg, "~"):
			re, err := pattern(d, arg[1:], true)
			if err != nil {
				return err
			}
			r.patterns = append(r.patterns, re)
		default:
			name, path, _ := strings.Cut(arg, "/")
			if path != "" || strings.HasSuffix(arg, "/") {
				path = "/" + path
			}
			if !r.names.Add(strings.ToLower(name), path) {
				return d.Errorf("conflicting parameter \"%s\"", arg)
			}
		}
	}
	return nil
}

// verifyReferers refuses a rule without a site, as nginx does: regular expressions are not counted.
func verifyReferers(_ *compiler, l *level) error {
	r := refererSlot.of(l)
	if r.given && (r.none || r.blocked) && !r.serverNames && r.names.Plain() == 0 {
		return l.at.Errorf("%s", `the "none" or "blocked" referers are specified in the "valid_referers" directive without any valid referer`)
	}
	return nil
}

func invalidReferer(x *exchange) string {
	if refererSlot.of(x.level).invalid(x) {
		return "1"
	}
	return ""
}

// invalid reports whether the request's Referer is not a valid one.
func (r *refererRule) invalid(x *exchange) bool {
	if !r.given {
		return false
	}
	fields := x.HTTP.Header["Referer"]
	if len(fields) == 0 {
		return !r.none
	}
	rest, ok := referred(fields[0])
	if !ok {
		return !r.blocked
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/:"); i >= 0 {
		host = rest[:i]
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		path = rest[i:]
	}
	if len(host) > maxRefererHost {
		return true
	}
	host = strings.ToLower(host)
	if want, found, _ := r.names.Find(host); found { // there are no regular expressions in it
		return !strings.HasPrefix(path, want.To)
	}
	if r.serverNames && slices.ContainsFunc(x.server.names, func(n nameRule) bool { return n.matches(host) }) {
		return false
	}
	return !slices.ContainsFunc(r.patterns, func(re *pcre.Regexp) bool { return x.match(re, rest) != nil })
}

// maxRefererHost bounds the host of a valid Referer.
const maxRefererHost = 256

// referred returns what stands behind the scheme of a Referer. ok is false for one that is no URL of http or https, as a firewall
// leaves it.
func referred(field string) (rest string, ok bool) {
	if len(field) < len("http://i.ru") {
		return "", false
	}
	for _, scheme := range [...]string{"http://", "https://"} {
		if strings.EqualFold(field[:len(scheme)], scheme) {
			return field[len(scheme):], true
		}
	}
	return "", false
}
