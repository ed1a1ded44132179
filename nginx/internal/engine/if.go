package engine

import (
	"os"
	"regexp"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// ifRule is an if with its block: a level of its own, which applies to the request from there on.
type ifRule struct {
	holds func(x *exchange) bool
	level *level
	at    *conf.Directive
}

// ifDirective compiles "if (condition) { … }". The block is compiled when the level around
// is, from which it inherits: see finishIfs.
func ifDirective(c *compiler, l *level, d *conf.Directive) (err error) {
	rule := &ifRule{at: d}
	if rule.holds, err = c.condition(d); err != nil {
		return err
	}
	l.ifs = append(l.ifs, rule)
	l.script = append(l.script, func(x *exchange, run *scriptRun) {
		if rule.holds(x) {
			x.level = rule.level
			rule.level.script.run(x, run)
		}
	})
	return nil
}

// finishIfs compiles the blocks of a level's ifs. As in nginx, they inherit its upstream but not
// its try_files.
func (c *compiler) finishIfs(l *level) error {
	for _, rule := range l.ifs {
		rule.level = l.inside()
		if err := c.finishInside(l, rule.level, rule.at); err != nil {
			return err
		}
	}
	return nil
}

// inside returns the level of a block inside a location that is not a location itself.
func (l *level) inside() *level {
	inner := l.child()
	inner.kind, inner.name, inner.pass = l.kind, l.name, l.pass
	inner.condition = true
	return inner
}

// finishInside compiles the block of such a level.
func (c *compiler) finishInside(l, inner *level, at *conf.Directive) error {
	if err := c.block(inner, at.Block); err != nil {
		return err
	}
	if err := c.finish(inner); err != nil {
		return at.Errorf("%s", err)
	}
	if inner.pass != l.pass {
		return c.finishPass(inner)
	}
	return nil
}

// condition compiles the condition between the parentheses.
func (c *compiler) condition(d *conf.Directive) (func(*exchange) bool, error) {
	args := d.Args
	if len(args) == 0 {
		return nil, d.Errorf("invalid condition")
	}
	if strings.HasPrefix(args[0], "$") {
		return c.variableCondition(d, args)
	}
	if len(args) == 2 {
		return c.fileCondition(d, args)
	}
	return nil, d.Errorf("invalid condition \"%s\"", args[0])
}

func (c *compiler) variableCondition(d *conf.Directive, args []string) (func(*exchange) bool, error) {
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
		return func(x *exchange) bool { return x.matches(re, variable) != negated }, err
	}
	return nil, d.Errorf("unexpected \"%s\" in condition", args[1])
}

func (x *exchange) matches(re *regexp.Regexp, variable vars.Getter) bool {
	v, _ := variable(&x.Request)
	groups := re.FindStringSubmatch(v)
	if groups == nil {
		x.Capture(nil, nil) // as in nginx the groups of the last match are cleared
		return false
	}
	x.Capture(groups, re.SubexpNames())
	return true
}

func (c *compiler) fileCondition(d *conf.Directive, args []string) (func(*exchange) bool, error) {
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
		info, err := os.Stat(name.String(&x.Request)) // as in nginx not relative to the prefix
		return (err == nil && is(info)) != negated
	}, err
}
