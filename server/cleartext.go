package server

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// speaksCleartext waits for the first byte of a connection, and reports whether that begins neither a handshake of TLS nor a
// ClientHello of SSL 2. It reports false where the system does not show it.
func speaksCleartext(socket net.Conn) bool {
	p := peekers.Get().(*http1.Peeker)
	defer peekers.Put(p)
	defer p.Reset()
	p.Init(socket)
	if !p.Waits() || p.AwaitReadable() != nil {
		return false
	}
	const handshake, ssl2 = 0x16, 0x80
	first, ok := p.First()
	return ok && first != handshake && first&ssl2 == 0
}

// refuseCleartext reads the request of a client that speaks HTTP without TLS, and refuses it. For the hooks and for Close the
// connection is t still, so the socket below it is served as another one.
func (c *conn) refuseCleartext(t *tls.Conn) {
	_ = t.SetDeadline(time.Time{})
	plain := &conn{server: c.server, rwc: t.NetConn(), remoteAddr: c.remoteAddr, ctx: c.ctx, accepted: c.accepted, cleartext: true}
	plain.state.Store(uint32(stateHeader))
	plain.initPeek()
	defer plain.freePeeker()
	plain.boundHeader(time.Now())
	plain.boundReads(plain.headerEnds)
	plain.takeReader()
	defer plain.freeReader()
	_, _ = plain.readRequest()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hijacked = plain.hijacked
}
