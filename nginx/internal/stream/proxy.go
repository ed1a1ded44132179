package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/upstream"
)

// Upstream is a group of servers.
type Upstream struct {
	Group *upstream.Group
	// Name is what its servers are verified by.
	Name string
	// Observe, if not nil, is called when a session is about to connect to a server, and what it returns when that has ended.
	Observe func(addr string) (ended func(Times))
}

// Times are those of a session at a server, from its begin.
type Times struct {
	Connect   time.Duration // until the connection was made
	FirstByte time.Duration // until its first byte; negative if there was none
	Total     time.Duration
	Failed    bool
}

// Proxy sends the client's bytes to an upstream and the upstream's to the client (ngx_stream_proxy_module.c).
type Proxy struct {
	// Upstream returns the upstream of a session. It logs why there is none.
	Upstream func(ctx context.Context, s *Session) (u Upstream, ok bool)
	// ConnectTimeout bounds the making of a connection, and once more its TLS handshake.
	ConnectTimeout time.Duration
	// Timeout is how long no byte may come from either side.
	Timeout time.Duration
	// Next reports whether a failure leads to the next server, at most Tries of them (0: all) and NextTimeout long (0: for ever).
	Next        bool
	Tries       int
	NextTimeout time.Duration
	// BufferSize is the size of each direction's buffer.
	BufferSize int
	// UploadRate and DownloadRate are bytes per second; "" and "0" are no bound.
	UploadRate, DownloadRate vars.Value
	// Requests is the number of datagrams after which a client's next one begins another session; 0 is no bound.
	Requests int
	// Responses is the number of datagrams that the upstream sends for one of the client's; negative: it is not known.
	Responses int
	// Header is the version of the PROXY protocol's header that is sent to the upstream, 0 for none.
	Header int
	// Bind is the local address of connections, "" for any.
	Bind vars.Value
	// HalfClose lets one side send when the other has ended.
	HalfClose bool
	// TLS returns the configuration of a connection to the upstream of a name; nil for cleartext. It logs why there is none.
	TLS func(s *Session, name string) (c *tls.Config, ok bool)
}

// errPanicked is the outcome of a session that has panicked, which is not the server's fault.
var errPanicked = &culvert.Error{Kind: culvert.Internal, Err: errors.New("a session panicked")}

func (p *Proxy) serve(ctx context.Context, s *Session) int {
	s.action = "connecting to upstream"
	began := time.Now().Unix()
	to, ok := p.Upstream(ctx, s)
	if !ok || s.failedPattern() {
		return statusFailed
	}
	up, lease, status := p.connect(ctx, s, to)
	if status != 0 {
		return status
	}
	defer lease.Done(upstream.Outcome{Err: errPanicked}) // further calls, of this and of what follows, have no effect
	a := s.attempts[len(s.attempts)-1]
	defer a.observed(true)
	defer a.finish()
	defer func() { _ = up.Close() }()
	r := &relay{
		s: s, a: a, proxy: p, client: s.conn, target: up, began: began,
		release: func(failure error) {
			lease.Done(upstream.Outcome{Err: failure})
			s.leave()
		},
		upload: rate(p.UploadRate.String(&s.Request)), download: rate(p.DownloadRate.String(&s.Request)),
	}
	s.action = "proxying connection"
	status = r.run(ctx)
	a.finish()
	a.observed(r.targetFailure() != nil)
	lease.Done(upstream.Outcome{Err: r.targetFailure()})
	return status
}

// withHeader returns the header of the PROXY protocol for the session's client, followed by b.
func (p *Proxy) withHeader(s *Session, b []byte) []byte {
	h := s.clientHeader()
	if p.Header == 2 {
		return append(h.Append2(nil), b...)
	}
	return append(h.Append1(nil), b...)
}

// plain returns the TCP connection of c if bytes may be moved without passing through this process.
func plain(c net.Conn) *net.TCPConn {
	t, _ := c.(*net.TCPConn)
	return t
}
