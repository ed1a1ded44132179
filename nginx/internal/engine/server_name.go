package engine

import (
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// nameRule is one name of a server; re is nil for a plain one.
type nameRule struct {
	text string
	re   *pcre.Regexp
}

// serverName compiles "server_name name ...".
func serverName(c *compiler, l *level, d *conf.Directive) error {
	for _, arg := range d.Args {
		rule := nameRule{text: strings.ToLower(arg)}
		text, _, isPattern := namePattern(arg)
		switch {
		case isPattern && text == "":
			return d.Errorf("empty regex in server name \"%s\"", arg)
		case isPattern:
			re, err := pattern(d, text, true) // host names ignore case
			if err != nil {
				return err
			}
			rule = nameRule{text: arg, re: re}
		case arg == "$hostname":
			name, err := os.Hostname()
			if err != nil {
				return d.Errorf("gethostname() failed (%s)", conf.Errno(err))
			}
			rule.text = strings.ToLower(name)
		case !route.ValidName(arg):
			return d.Errorf("invalid server name or wildcard \"%s\"", arg)
		case strings.Contains(arg, "/"):
			c.warn(d, "server name \""+arg+"\" has suspicious symbols")
		}
		l.server.names = append(l.server.names, rule)
	}
	return nil
}

// matches reports whether the rule is for a host.
func (n nameRule) matches(host string) bool {
	if n.re != nil {
		matches, _ := n.re.Matches(host)
		return matches
	}
	if suffix, ok := strings.CutPrefix(n.text, "*"); ok {
		return strings.HasSuffix(host, suffix)
	}
	if strings.HasPrefix(n.text, ".") {
		return host == n.text[1:] || strings.HasSuffix(host, n.text)
	}
	if prefix, ok := strings.CutSuffix(n.text, "*"); ok {
		return strings.HasPrefix(host, prefix)
	}
	return host == n.text
}

// nameCaptures declares the groups of the names.
func nameCaptures(c *compiler, d *conf.Directive) error {
	for _, name := range d.Args {
		if text, _, ok := namePattern(name); ok {
			if err := c.declareGroups(d, text); err != nil {
				return err
			}
		}
	}
	return nil
}
