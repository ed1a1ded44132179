package engine

import "github.com/culvert-go/culvert/nginx/conf"

// httpBlock compiles everything inside http. What may be used above its definition is declared
// first; a level's own directives are compiled before the blocks inside, since those inherit them
// regardless of the order.
func httpBlock(c *compiler, main *level, d *conf.Directive) error {
	if err := c.declare(d.Block); err != nil {
		return err
	}
	l := main.child()
	if err := c.block(l, d.Block); err != nil {
		return err
	}
	if err := c.finish(l); err != nil {
		return d.Errorf("%s", err)
	}
	for _, s := range d.Block {
		if s.Name != "server" {
			continue
		}
		if err := c.server(l, s); err != nil {
			return err
		}
	}
	if err := c.resolveNames(l); err != nil {
		return err
	}
	for _, finish := range c.deferred {
		if err := finish(); err != nil {
			return err
		}
	}
	return c.listeners()
}

// declare declares variables, log formats and upstreams.
func (c *compiler) declare(list []*conf.Directive) error {
	if err := c.declareVariables(list); err != nil {
		return err
	}
	if err := c.declareFormats(list); err != nil {
		return err
	}
	for _, d := range list {
		declare, ok := c.declared()[d.Name]
		if !ok {
			continue
		}
		if err := declare(d); err != nil {
			return err
		}
	}
	return c.declareUpstreams(list)
}

// declared returns the directives of http that define names for others to use.
func (c *compiler) declared() map[string]func(*conf.Directive) error {
	return map[string]func(*conf.Directive) error{
		"limit_conn_zone": c.declareConnZone,
		"limit_req_zone":  c.declareRequestZone,
	}
}
