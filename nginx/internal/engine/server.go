package engine

import (
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// serverModule holds the servers and their names.
var serverModule = module{
	directives: []directive{
		{name: "server", repeatable: true},
		{name: "server_name", repeatable: true, compile: serverName, captures: nameCaptures},
	},
	blocks: compileServers,
}

// server is one server block.
type server struct {
	engine  *Engine
	at      *conf.Directive
	level   *level
	names   []nameRule
	listens []listenRule
	named   map[string]*level // locations that start with "@"
	tunnels bool              // it has a tunnel_pass
	stream  *stream.Server    // nil for one of http
}

// compileServers compiles the servers of http.
func compileServers(c *compiler, http *level, list []*conf.Directive) error {
	for _, d := range list {
		if d.Name != "server" {
			continue
		}
		if err := c.fail(compileServer(c, http, d)); err != nil {
			return err
		}
	}
	return nil
}

func compileServer(c *compiler, http *level, d *conf.Directive) error {
	s := &server{engine: c.engine, at: d, level: http.child(d), named: map[string]*level{}}
	s.level.server, s.level.locations = s, &route.Locations[*level]{}
	if err := c.block(s.level, d.Block); err != nil {
		return err
	}
	if len(s.names) == 0 {
		s.names = []nameRule{{}}
	}
	if len(s.listens) == 0 {
		s.listens = []listenRule{{addr: listenAddr{AddrPort: netip.AddrPortFrom(netip.IPv4Unspecified(), 80)}, at: d}}
	}
	c.servers = append(c.servers, s)
	return nil
}

// firstName returns $server_name. A leading dot stands for a wildcard and is not part of it.
func (s *server) firstName() string { return strings.TrimPrefix(s.names[0].text, ".") }
