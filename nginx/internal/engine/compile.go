package engine

import (
	"cmp"
	"path/filepath"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// compiler compiles directives into levels, servers and handlers.
type compiler struct {
	engine  *Engine
	prefix  string // what paths are relative to
	confDir string // what ssl_certificate and include are relative to
	scope   *vars.Scope
	groups  map[string]*group
	servers []*server
	stream  bool // it compiles stream, not http

	modules    []*module
	directives map[string]directive // those that stand on a level
	inUpstream map[string]directive // those inside upstream
	phases     map[string]*phases   // by the modules that are active
	deferred   []func() error       // called when all of http is compiled
	before     shared               // of the configuration that is replaced, empty for the first
	onError    func(error)          // nil: the first error ends the compilation
	failed     map[string]bool      // the texts of those that it has received
	first      error
}

// fail returns err, or nil where compiling is to continue behind it.
func (c *compiler) fail(err error) error {
	if err == nil || c.onError == nil {
		return err
	}
	if c.first = cmp.Or(c.first, err); !c.failed[err.Error()] {
		c.failed[err.Error()] = true
		c.onError(err)
	}
	return nil
}

// use sets the modules whose directives the compiler knows.
func (c *compiler) use(list []*module) {
	c.modules, c.phases = list, map[string]*phases{}
	c.directives, c.inUpstream = map[string]directive{}, map[string]directive{}
	for _, m := range list {
		for _, d := range m.directives {
			if d.upstream != nil {
				c.inUpstream[d.name] = d
			} else {
				c.directives[d.name] = d
			}
		}
	}
}

// block compiles a level: its own directives, which the modules merge with what it has inherited,
// and the blocks inside, which inherit the result regardless of the order.
func (c *compiler) block(l *level, list []*conf.Directive) error {
	if err := c.own(l, list); err != nil {
		return err
	}
	for _, m := range c.modules {
		if m.merge == nil {
			continue
		}
		if err := c.fail(m.merge(c, l)); err != nil {
			return err
		}
	}
	l.phases = c.phasesOf(l)
	for _, m := range c.modules {
		if m.blocks == nil {
			continue
		}
		if err := c.fail(m.blocks(c, l, list)); err != nil {
			return err
		}
	}
	return nil
}

// own compiles a level's own directives. A name that no module has is a no-op: the parser has
// refused everything else.
func (c *compiler) own(l *level, list []*conf.Directive) error {
	for _, d := range list {
		if compile := c.directives[d.Name].compile; compile != nil {
			if err := c.fail(compile(c, l, d)); err != nil {
				return err
			}
		}
	}
	return nil
}

// value compiles an argument with variables.
func (c *compiler) value(d *conf.Directive, text string) (vars.Value, error) {
	v, err := c.scope.Compile(text)
	if err != nil {
		return v, d.Errorf("%s", err)
	}
	return v, nil
}

// warn logs a warning about something that nginx accepts.
func (c *compiler) warn(d *conf.Directive, text string) {
	c.engine.logger.Warn(d.Errorf("%s", text).Error())
}

// path makes a name absolute, relative to the prefix.
func (c *compiler) path(name string) string { return absolute(c.prefix, name) }

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
