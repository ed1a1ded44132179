package nginx

import (
	"net"
	"net/netip"

	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// serveStreams serves the sockets of stream. Sessions that run when the configuration is replaced continue, except that datagrams
// which clients send from then on begin new ones.
func (g *generation) serveStreams(sockets map[socketKey]*socket) {
	env := &stream.Env{Pass: g.pass}
	for _, l := range g.engine.Streams() {
		s := sockets[keyOfStream(l)]
		if l.Port.UDP {
			s.packets.Serve(func(c *stream.PacketConn) {
				l.Port.Limit(c)
				g.startSession(l, env, c)
			})
			continue
		}
		v := s.view()
		g.views = append(g.views, v)
		g.serving.Go(func() {
			for {
				c, err := v.Accept()
				if err != nil { // the view is closed
					return
				}
				g.startSession(l, env, c)
			}
		})
	}
}

// startSession serves a connection on a goroutine of its own.
func (g *generation) startSession(l engine.StreamListener, env *stream.Env, c net.Conn) {
	if _, ok := g.active.Enter(); !ok {
		c.Close()
		return
	}
	s := l.Port.Accept(env, c)
	go func() {
		defer g.active.Leave()
		s.Serve(g.ctx)
	}()
}

// findPassable lists the sockets of http and of stream that accept connections.
func (g *generation) findPassable(sockets map[socketKey]*socket) {
	g.passable = map[stream.Address]*socket{}
	for _, l := range g.engine.Listeners() {
		g.passable[addressOf(keyOf(l))] = sockets[keyOf(l)]
	}
	for _, l := range g.engine.Streams() {
		if !l.Port.UDP {
			g.passable[addressOf(keyOfStream(l))] = sockets[keyOfStream(l)]
		}
	}
}

// pass hands a connection to the socket for an address, and reports whether there is one.
func (g *generation) pass(to stream.Address, c net.Conn) bool {
	for at, s := range g.passable {
		if at.Matches(to) {
			s.deliver(c)
			return true
		}
	}
	return false
}

// addressOf returns the address of a socket that accepts connections.
func addressOf(key socketKey) stream.Address {
	if key.network == "unix" {
		return stream.Address{Path: key.address}
	}
	at, _ := netip.ParseAddrPort(key.address)
	return stream.Address{AddrPort: at}
}
