package engine

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/resolver"
)

// resolverModule looks up names while requests are served.
var resolverModule = module{
	directives: []directive{
		{name: "resolver", compile: resolverDirective},
		{name: "resolver_timeout", compile: resolverTimeout},
	},
}

var resolverSlot = newSlot((*resolverRule)(nil))

// resolverRule is a resolver: the name servers for names that come from variables, and for
// servers with "resolve". Without one, resolver_timeout makes a rule without a Resolver.
type resolverRule struct {
	*resolver.Resolver
	valid   time.Duration // 0: the records' time to live
	timeout time.Duration // 0: none
}

// resolverDirective compiles "resolver address ... [valid=time] [ipv4=on|off] [ipv6=on|off]".
func resolverDirective(c *compiler, l *level, d *conf.Directive) error {
	r := &resolverRule{timeout: 30 * time.Second}
	if have := *resolverSlot.of(l); have != nil {
		r.timeout = have.timeout
	}
	var o resolver.Options
	for _, arg := range d.Args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case ok && key == "valid":
			if o.Valid, ok = conf.Duration(value); !ok {
				return d.Errorf("invalid parameter: %s", arg)
			}
		case (key == "ipv4" || key == "ipv6") && (value == "on" || value == "off"):
			if key == "ipv4" {
				o.NoIPv4 = value == "off"
			} else {
				o.NoIPv6 = value == "off"
			}
		case key == "ipv4", key == "ipv6":
			return d.Errorf("invalid parameter: %s", arg)
		case key == "status_zone": // it is about nginx's API
		default:
			servers, err := nameServers(d, arg)
			if err != nil {
				return err
			}
			o.Servers = append(o.Servers, servers...)
		}
	}
	switch {
	case len(o.Servers) == 0:
		return d.Errorf("no name servers defined")
	case o.NoIPv4 && o.NoIPv6:
		return d.Errorf("\"ipv4\" and \"ipv6\" cannot both be \"off\"")
	}
	o.Log = func(line string) { c.engine.logger.Error(line) }
	r.Resolver, r.valid = resolver.New(o), o.Valid
	*resolverSlot.edit(l) = r
	return nil
}

// nameServers returns the addresses of a name server.
func nameServers(d *conf.Directive, arg string) (list []string, err error) {
	host, port, err := hostPort(d, arg, "53")
	if err != nil {
		return nil, err
	}
	ips, err := lookup(host)
	if err != nil {
		return nil, d.Errorf("host not found in resolver \"%s\"", arg)
	}
	for _, ip := range ips {
		list = append(list, net.JoinHostPort(ip, port))
	}
	return list, nil
}

func resolverTimeout(_ *compiler, l *level, d *conf.Directive) error {
	t, err := d.Duration()
	if err != nil {
		return err
	}
	var r resolverRule
	if have := *resolverSlot.of(l); have != nil {
		r = *have
	}
	r.timeout = t
	*resolverSlot.edit(l) = &r
	return nil
}

// known reports whether there are name servers: resolver_timeout alone names none.
func (r *resolverRule) known() bool { return r != nil && r.Resolver != nil }

// bound returns a context that ends with resolver_timeout.
func (r *resolverRule) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, r.timeout)
}
