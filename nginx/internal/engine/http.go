package engine

import "github.com/culvert-go/culvert/nginx/conf"

// httpBlock compiles everything inside http. What may be used above its definition is declared
// first.
func httpBlock(c *compiler, main *level, d *conf.Directive) error {
	l := main.child(d)
	if err := c.declare(l, d.Block); err != nil {
		return err
	}
	if err := c.block(l, d.Block); err != nil {
		return err
	}
	for _, finish := range c.deferred {
		if err := c.fail(finish()); err != nil {
			return err
		}
	}
	return createListeners(c)
}

// declare declares variables, and then what may have them in its definition.
func (c *compiler) declare(l *level, list []*conf.Directive) error {
	if err := c.declareVariables(list); err != nil {
		return err
	}
	for _, d := range list {
		if declare := c.directives[d.Name].declare; declare != nil {
			if err := c.fail(declare(c, l, d)); err != nil {
				return err
			}
		}
	}
	return nil
}
