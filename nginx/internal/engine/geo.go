package engine

import (
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// defineGeo compiles "geo [$address] $variable { … }".
func defineGeo(c *compiler, d *conf.Directive, name string) func() error {
	g := new(vars.Geo)
	c.scope.DeclareGeo(name, g)
	return func() error { return fillGeo(c, g, d) }
}

func fillGeo(c *compiler, g *vars.Geo, d *conf.Directive) (err error) {
	source := "$remote_addr"
	if len(d.Args) == 2 {
		source = d.Args[0]
	}
	name, ok := strings.CutPrefix(source, "$")
	if !ok {
		return d.Errorf("invalid variable name \"%s\"", source)
	}
	if g.Source, err = c.scope.Named(name); err != nil {
		return d.Errorf("%s", err)
	}
	ranges := false
	for _, row := range d.Block {
		if row.Name == "ranges" && len(row.Args) == 0 {
			ranges = true
			continue
		}
		if err := geoRow(c, g, row, ranges); err != nil {
			return err
		}
	}
	return nil
}

func geoRow(c *compiler, g *vars.Geo, row *conf.Directive, ranges bool) error {
	switch {
	case c.stream && (row.Name == "proxy" || row.Name == "proxy_recursive"): // which are about a field of requests
		return row.Errorf("invalid network \"%s\"", row.Name)
	case row.Name == "proxy_recursive" && len(row.Args) == 0:
		g.Recursive = true
		return nil
	case row.Name == "volatile" && len(row.Args) == 0:
		g.Volatile = true
		return nil
	case len(row.Args) != 1:
		return row.Errorf("invalid number of the geo parameters")
	case row.Name == "default":
		g.Default = row.Args[0]
		return nil
	case row.Name == "proxy":
		p, ok := network(row.Args[0])
		if !ok {
			return row.Errorf("invalid network \"%s\"", row.Args[0])
		}
		g.Trusted = append(g.Trusted, p)
		return nil
	}
	network, value, remove := row.Name, row.Args[0], row.Name == "delete"
	if remove {
		network = value
	}
	if ranges {
		return geoRange(g, row, network, value, remove)
	}
	return geoNetwork(c, g, row, network, value, remove)
}

func geoNetwork(c *compiler, g *vars.Geo, row *conf.Directive, text, value string, remove bool) error {
	p, ok := network(text)
	switch {
	case !ok:
		return row.Errorf("invalid network \"%s\"", text)
	case remove:
		g.RemoveNetwork(p)
	case !g.AddNetwork(p, value):
		c.warn(row, "duplicate network \""+text+"\", value: \""+value+"\"")
	}
	return nil
}

func geoRange(g *vars.Geo, row *conf.Directive, text, value string, remove bool) error {
	first, last, _ := strings.Cut(text, "-")
	from, err := netip.ParseAddr(first)
	to, err2 := netip.ParseAddr(last)
	if err != nil || err2 != nil || to.Less(from) {
		return row.Errorf("invalid range \"%s\"", text)
	}
	if remove {
		g.RemoveRange(from, to)
	} else {
		g.AddRange(from, to, value)
	}
	return nil
}
