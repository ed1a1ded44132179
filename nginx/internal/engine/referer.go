package engine

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// refererRule is valid_referers, which makes $invalid_referer
// (ngx_http_referer_module.c).
type refererRule struct {
	given       bool
	none        bool // a request without the field is valid
	blocked     bool // so is a value that is no URL
	serverNames bool
	names       *route.Names[string] // to what the path must begin with
	patterns    []*regexp.Regexp
}

// validReferers compiles "valid_referers none|blocked|server_names|name|~regex ...".
func validReferers(_ *compiler, l *level, d *conf.Directive) error {
	if l.first("valid_referers") {
		l.referers = refererRule{given: true, names: route.NewNames[string]()}
	}
	r := &l.referers
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

// verify refuses a rule without a site, as nginx does: regular expressions are not counted.
func (r *refererRule) verify() error {
	if r.given && (r.none || r.blocked) && !r.serverNames && r.names.Plain() == 0 {
		return errors.New(`the "none" or "blocked" referers are specified in the "valid_referers" directive without any valid referer`)
	}
	return nil
}

// InvalidReferer implements vars.Location.
func (x *exchange) InvalidReferer() bool { return x.level.referers.invalid(x) }

// invalid reports whether the request's Referer is not a valid one.
func (r *refererRule) invalid(x *exchange) bool {
	if !r.given {
		return false
	}
	field := x.HTTP.Header.Get("Referer")
	if field == "" {
		return !r.none
	}
	rest, ok := strings.CutPrefix(strings.ToLower(field), "http://")
	if !ok {
		if rest, ok = strings.CutPrefix(strings.ToLower(field), "https://"); !ok {
			return !r.blocked
		}
	}
	rest = field[len(field)-len(rest):]
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	host = hostName(host)
	if want, _, _, found := r.names.Find(host); found && strings.HasPrefix(path, want) {
		return false
	}
	if r.serverNames && slices.ContainsFunc(x.server.names, func(n nameRule) bool { return n.matches(host) }) {
		return false
	}
	return !slices.ContainsFunc(r.patterns, func(re *regexp.Regexp) bool { return re.MatchString(rest) })
}
