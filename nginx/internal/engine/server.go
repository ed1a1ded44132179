package engine

import (
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// server is one server block.
type server struct {
	level     *level
	names     []nameRule
	listens   []listenRule
	locations *route.Locations[*level]
	named     map[string]*level // locations that start with "@"
	silent    bool              // it has listens that are not served
}

// server compiles a server block inside http.
func (c *compiler) server(http *level, d *conf.Directive) error {
	s := &server{locations: &route.Locations[*level]{}, named: map[string]*level{}}
	s.level = http.child()
	s.level.server = s
	if err := c.block(s.level, d.Block); err != nil {
		return err
	}
	if err := c.finish(s.level); err != nil {
		return d.Errorf("%s", err)
	}
	if err := c.finishIfs(s.level); err != nil {
		return err
	}
	if len(s.names) == 0 {
		s.names = []nameRule{{}}
	}
	if len(s.listens) == 0 && !s.silent {
		s.listens = []listenRule{{addr: listenAddr{AddrPort: netip.AddrPortFrom(netip.IPv4Unspecified(), 80)}, at: d}}
	}
	for _, rule := range s.listens {
		if rule.ssl && len(s.level.ssl.certs) == 0 && !s.level.ssl.reject {
			return rule.at.Errorf("no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive")
		}
	}
	if err := c.locations(s.level, s.locations, d.Block); err != nil {
		return err
	}
	c.servers = append(c.servers, s)
	return nil
}

// firstName returns $server_name. A leading dot stands for a wildcard and is not part of it.
func (s *server) firstName() string { return strings.TrimPrefix(s.names[0].text, ".") }
