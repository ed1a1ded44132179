package engine

import (
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// ifRule is an if with its block: a level of its own, which applies to the request from there on.
type ifRule struct {
	holds func(x *exchange) bool
	level *level
	at    *conf.Directive
}

// ifDirective compiles "if (condition) { … }". The block is compiled when the level around
// is, from which it inherits: see compileIfs.
func ifDirective(c *compiler, l *level, d *conf.Directive) (err error) {
	rule := &ifRule{at: d}
	if rule.holds, err = parseCondition(c, d); err != nil {
		return err
	}
	s := rewriteSlot.edit(l)
	s.ifs = append(s.ifs, rule)
	addStep(l, func(x *exchange, run *scriptRun) {
		if rule.holds(x) {
			x.level = rule.level
			rewriteSlot.of(rule.level).script.run(x, run)
		}
	})
	return nil
}

// compileIfs compiles the blocks of a level's ifs. As in nginx, they inherit its upstream but not
// its try_files.
func compileIfs(c *compiler, l *level, _ []*conf.Directive) error {
	for _, rule := range rewriteSlot.of(l).ifs {
		rule.level = l.inside(rule.at)
		if err := c.block(rule.level, rule.at.Block); err != nil {
			return err
		}
	}
	return nil
}

func conditionCaptures(c *compiler, d *conf.Directive) error {
	if n := len(d.Args); n == 3 && strings.HasSuffix(strings.TrimSuffix(d.Args[1], "*"), "~") {
		return c.declareGroups(d, d.Args[2])
	}
	return nil
}

// parseCondition compiles the condition between the parentheses.
func parseCondition(c *compiler, d *conf.Directive) (func(*exchange) bool, error) {
	args := d.Args
	if len(args) == 0 {
		return nil, d.Errorf("invalid condition")
	}
	if strings.HasPrefix(args[0], "$") {
		return variableCondition(c, d, args)
	}
	if len(args) == 2 {
		return fileCondition(c, d, args)
	}
	return nil, d.Errorf("invalid condition \"%s\"", args[0])
}

func variableCondition(c *compiler, d *conf.Directive, args []string) (func(*exchange) bool, error) {
	if len(args) != 1 && len(args) != 3 {
		return nil, d.Errorf("invalid condition \"%s\"", args[0])
	}
	variable, err := c.scope.Named(args[0][1:])
	if err != nil {
		return nil, d.Errorf("%s", err)
	}
	if len(args) == 1 {
		return func(x *exchange) bool {
			v, _ := variable(&x.Request)
			return v != "" && v != "0"
		}, nil
	}
	operator, negated := strings.CutPrefix(args[1], "!")
	switch operator {
	case "=":
		value, err := c.value(d, args[2])
		return func(x *exchange) bool {
			v, _ := variable(&x.Request)
			return (v == value.String(&x.Request)) != negated
		}, err
	case "~", "~*":
		re, err := pattern(d, args[2], operator == "~*")
		return func(x *exchange) bool { return matches(x, re, variable) != negated }, err
	}
	return nil, d.Errorf("unexpected \"%s\" in condition", args[1])
}

func matches(x *exchange, re *pcre.Regexp, variable vars.Getter) bool {
	v, _ := variable(&x.Request)
	groups := x.match(re, v)
	if groups == nil {
		x.Capture(nil, nil) // as in nginx the groups of the last match are cleared
		return false
	}
	x.Capture(groups, re.Names())
	return true
}

func fileCondition(c *compiler, d *conf.Directive, args []string) (func(*exchange) bool, error) {
	operator, negated := strings.CutPrefix(args[0], "!")
	is, ok := map[string]func(os.FileInfo) bool{
		"-f": func(i os.FileInfo) bool { return i.Mode().IsRegular() },
		"-d": os.FileInfo.IsDir,
		"-e": func(os.FileInfo) bool { return true },
		"-x": func(i os.FileInfo) bool { return i.Mode()&0o111 != 0 },
	}[operator]
	if !ok {
		return nil, d.Errorf("invalid condition \"%s\"", args[0])
	}
	name, err := c.value(d, args[1])
	return func(x *exchange) bool {
		info, err := links(x).Stat(name.String(&x.Request)) // as in nginx not relative to the prefix
		return (err == nil && is(info)) != negated
	}, err
}
