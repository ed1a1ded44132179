package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/upstream"
)

// balance compiles the directives that choose among an upstream's servers.
func balance(c *compiler, g *group, d *conf.Directive) error {
	if g.chosen != "" {
		c.warn(d, "load balancing method redefined")
	}
	g.chosen, g.noBackup, g.least = d.Name, false, nil
	switch d.Name {
	case "ip_hash":
		g.balance, g.noBackup = upstream.IPHash(), true
	case "least_conn":
		g.balance = upstream.LeastConn()
	case "least_time":
		return g.leastTime(c, d)
	case "random":
		return g.random(d)
	case "hash":
		return g.hash(c, d)
	}
	return nil
}

// random compiles "random [two [least_conn]]". It always picks the one of two with fewer
// requests: that is the better choice, and "random" alone promises no other.
func (g *group) random(d *conf.Directive) error {
	if len(d.Args) > 0 && d.Args[0] != "two" || len(d.Args) > 1 && d.Args[1] != "least_conn" {
		return d.Errorf("invalid parameter \"%s\"", d.Args[len(d.Args)-1])
	}
	g.balance, g.noBackup = upstream.RandomTwo(), true
	return nil
}

// hash compiles "hash key [consistent]".
func (g *group) hash(c *compiler, d *conf.Directive) error {
	if len(d.Args) == 2 && d.Args[1] != "consistent" {
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	}
	key, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	keyOf := func(r *http.Request) string {
		if x := exchangeOf(r.Context()); x != nil {
			return key.String(&x.Request)
		}
		if s := stream.FromContext(r.Context()); s != nil {
			return key.String(&s.Request)
		}
		return ""
	}
	g.balance, g.noBackup = upstream.HashModulo(keyOf), true
	if len(d.Args) == 2 {
		g.balance = upstream.Hash(keyOf)
	}
	return nil
}
