package engine

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// rewriteModule runs set, rewrite, return, break and if (ngx_http_rewrite_module.c).
var rewriteModule = module{
	directives: []directive{
		{name: "break", repeatable: true, compile: breakDirective},
		{name: "if", repeatable: true, compile: ifDirective, captures: conditionCaptures},
		{name: "return", repeatable: true, compile: returnDirective},
		{name: "rewrite", repeatable: true, compile: rewrite, captures: rewriteCaptures},
		{name: "set", repeatable: true, compile: set, sets: declareSet},
	},
	blocks: compileIfs,
	active: func(l *level) bool { return len(rewriteSlot.of(l).script) > 0 },
	hooks:  hooks{rewrite: runScript},
}

var rewriteSlot = newLocalSlot[rewriteSettings]()

// rewriteSettings are the script of a level.
type rewriteSettings struct {
	script script
	ifs    []*ifRule // their blocks have yet to be compiled
}

// rewriteRule is one rewrite.
type rewriteRule struct {
	re           *pcre.Regexp
	path         vars.Value // the replacement up to its "?"
	args         vars.Value // and behind
	hasArgs      bool
	keepArgs     bool // the request's are added
	status       int  // of a redirect, 0 for another path inside
	last         bool
	keepLocation bool // break: the path is served in this location
}

// rewrite compiles "rewrite regex replacement [last|break|redirect|permanent]".
func rewrite(c *compiler, l *level, d *conf.Directive) error {
	rule, err := parseRewrite(c, d)
	if err != nil {
		return err
	}
	addStep(l, rule.step)
	return nil
}

func rewriteCaptures(c *compiler, d *conf.Directive) error { return c.declareGroups(d, d.Args[0]) }

func parseRewrite(c *compiler, d *conf.Directive) (rule *rewriteRule, err error) {
	rule = &rewriteRule{keepArgs: true}
	if rule.re, err = pattern(d, d.Args[0], false); err != nil {
		return nil, err
	}
	replacement := d.Args[1]
	if isURL(replacement) {
		rule.status = http.StatusFound
	}
	if len(d.Args) == 3 {
		switch d.Args[2] {
		case "last":
			rule.last = true
		case "break":
			rule.keepLocation = true
		case "redirect":
			rule.status = http.StatusFound
		case "permanent":
			rule.status = http.StatusMovedPermanently
		default:
			return nil, d.Errorf("invalid parameter \"%s\"", d.Args[2])
		}
	}
	if trimmed, ok := strings.CutSuffix(replacement, "?"); ok {
		replacement, rule.keepArgs = trimmed, false
	}
	path, args, hasArgs := strings.Cut(replacement, "?")
	rule.hasArgs = hasArgs
	if rule.path, err = c.value(d, path); err != nil {
		return nil, err
	}
	rule.args, err = c.value(d, args)
	return rule, err
}

// step runs the rule.
func (rule *rewriteRule) step(x *exchange, run *scriptRun) {
	groups := x.match(rule.re, x.URI)
	if groups == nil {
		x.Capture(nil, nil) // as in nginx the groups of the last match are cleared
		return
	}
	x.Capture(groups, rule.re.Names())
	path := rewritten(x, rule.path, groups, rule.status != 0)
	args := x.Args
	switch {
	case rule.hasArgs && rule.keepArgs && x.Args != "":
		args = escapedArgs(rewritten(x, rule.args, groups, true)) + "&" + x.Args
	case rule.hasArgs:
		args = escapedArgs(rewritten(x, rule.args, groups, true))
	case !rule.keepArgs:
		args = ""
	}
	if rule.status != 0 {
		run.done, run.returns = true, &returnRule{status: rule.status, text: vars.Constant(escapedArgs(withArgs(unescapedURL(path), args))), given: true}
		return
	}
	if path == "" {
		x.logError("the rewritten URI has a zero length")
		run.done, run.returns = true, &returnRule{status: http.StatusInternalServerError}
		return
	}
	x.URI, x.Args, x.Internal, x.uriChanged = path, args, true, true
	x.uriRewritten = x.uriRewritten || rule.keepLocation
	run.changed = !rule.keepLocation
	run.done = rule.last || rule.keepLocation
}

// rewritten returns the text of a rule's replacement. If it is sent to the client or is a query,
// the groups of a path that was received escaped are escaped again; variables are left as they
// are (ngx_http_script_copy_capture_code).
func rewritten(x *exchange, v vars.Value, groups []string, quote bool) string {
	path, _ := route.Split(x.RequestURI)
	if !quote || !strings.ContainsAny(path, "%+") {
		return v.String(&x.Request)
	}
	quoted := make([]string, len(groups))
	for i, group := range groups {
		quoted[i] = route.EscapeArgs(group)
	}
	x.Capture(quoted, nil)
	defer x.Capture(groups, nil)
	return v.String(&x.Request)
}

// unescapedURL removes, up to the query, escapes that a Location does not need
// (NGX_UNESCAPE_REDIRECT of ngx_unescape_uri).
func unescapedURL(to string) string {
	var b strings.Builder
	for i := 0; i < len(to); i++ {
		c, width := to[i], 1
		if c == '%' {
			if n, err := strconv.ParseUint(to[i+1:min(i+3, len(to))], 16, 8); err == nil && i+2 < len(to) && n > '%' && n < 0x7f {
				c, width = byte(n), 3
			}
		}
		b.WriteByte(c)
		if i += width - 1; c == '?' {
			return b.String() + to[i+1:]
		}
	}
	return b.String()
}

// escapedArgs escapes only what would end the request line in a query.
func escapedArgs(args string) string {
	return strings.NewReplacer(" ", "%20", "\r", "%0D", "\n", "%0A").Replace(args)
}
