package wsupgrade

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/relay"
)

// AnyProtocol in Options.Protocols stands for every protocol that can be forwarded.
const AnyProtocol = "*"

// Options configures a Forwarder. The zero value forwards WebSockets from the site's own pages and
// from clients that are not browsers. Times are as package culvert says: 0 is the default, a negative
// bound is none.
type Options struct {
	// Protocols are the protocols that may be upgraded to, compared without case. nil means
	// "websocket". AnyProtocol among them means every protocol that can be forwarded; of several
	// that a request offers "websocket" is chosen, else the first. A request for another protocol
	// is treated as a plain request. New returns an error for h2c, HTTP and TLS: requests inside
	// them would pass every filter unseen.
	Protocols []string
	// Dial connects to the target. nil means a net.Dialer or, where the Forwarder is proxy.Options.Upgrades, that the target is
	// dialled as its group dials it, also by TLS if TLSConfig is nil, too. Its context has the values of the
	// outbound request's context. A Dial that returns (nil, nil) has failed. If its error is a *culvert.Error, or wraps one, its
	// Kind and RetryAfter are used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSConfig is for targets whose URL has the scheme https or wss. nil verifies the certificate
	// against the system's roots and the target's host.
	TLSConfig *tls.Config
	// DialTLS, if not nil, connects to targets whose URL has the scheme https or wss, in place of Dial and TLSConfig. The
	// connection that it returns has its TLS handshake behind it, with HTTP/1.1.
	DialTLS func(ctx context.Context, network, addr string) (net.Conn, error)
	// HandshakeTimeout bounds dialling, the TLS handshake and the header of the target's response
	// together, and each write of a response that does not switch to the client, to a quarter. 0
	// means 10 seconds.
	HandshakeTimeout time.Duration
	// HeaderTimeout bounds the time from the dialled connection to the header of the target's
	// response, within HandshakeTimeout. 0 means no bound of its own.
	HeaderTimeout time.Duration
	// MaxHeaderBytes bounds the header of the target's response, interim responses included. 0 means
	// 64 KiB.
	MaxHeaderBytes int
	// Hosts are the hosts by which a WebSocket may be requested, with any port: names, "*." and
	// a name for all names below it, IPv4 addresses, IPv6 addresses without brackets. Case is
	// ignored. Others are refused (403): CheckOrigin alone does not help where a foreign page makes
	// its own name resolve to this server (DNS rebinding), which a server on loopback or in a
	// private network must expect. nil means any. New returns an error for what no browser sends as
	// a host: a port, a name that is not in punycode, a leading or trailing dot, "*" elsewhere than
	// as the whole first label.
	Hosts []string
	// CheckOrigin reports whether a WebSocket may be opened by the page that the Origin field
	// names. nil means: if there is an Origin, its host must be the request's Host. AllowOrigins
	// makes one of a list. One that accepts every origin lets any page that a user visits speak to
	// the target with the user's cookies.
	CheckOrigin func(*http.Request) bool
	// Registry lists the tunnels, bounds their number and drains them. Several Forwarders may share
	// one. If nil, tunnels are neither listed, bounded nor drained.
	Registry *Registry
	// IdleTimeout ends a tunnel over which no byte was received from either side for that long,
	// MaxLifetime one that is that old: WebSockets by a Close frame with GoingAway. The Pongs of a
	// WebSocket do not count: an end that only responds to pings, those of PingInterval or the other
	// end's, is idle; one that sends pings is not. 0 means no bound.
	IdleTimeout, MaxLifetime time.Duration
	// PingInterval is how long one end of a WebSocket may be silent before it is sent a ping. If it
	// is silent as long again, both ends are sent a Close frame with GoingAway. The Pong is not
	// passed on. Pings keep middleboxes from dropping an idle connection, and find ends that are
	// gone. 0 means never.
	PingInterval time.Duration
	// Portable keeps tunnels between plain sockets on the engine that every system has, with a
	// goroutine for each direction. Otherwise a few loops move them on Linux, and an idle one costs
	// neither a goroutine nor a buffer.
	Portable bool
	// Observe is called with the handshake of each WebSocket, and returns the Observer of its
	// messages. If it is nil or returns nil, frames pass as they are.
	Observe func(*http.Request) *Observer
}

// Forwarder forwards upgrades. It is safe for concurrent use by multiple goroutines.
type Forwarder struct {
	protocols        []string   // nil: any that can be forwarded
	dial             relay.Dial // nil: that of the context, or of a net.Dialer
	dialTLS          relay.Dial // nil: dial, and tlsConfig
	tlsConfig        *tls.Config
	handshakeTimeout time.Duration
	headerTimeout    time.Duration // 0: handshakeTimeout alone
	maxHeaderBytes   int
	hosts            []hostPattern // nil: any
	checkOrigin      func(*http.Request) bool
	registry         *Registry // nil: none
	limits           limits
	observe          func(*http.Request) *Observer
	loops            *loops // nil: the portable engine
}

// New checks o and returns the Forwarder. It returns an error for a negative MaxHeaderBytes, for a
// protocol that can't be forwarded, and for a host that no browser sends.
func New(o Options) (*Forwarder, error) {
	if o.MaxHeaderBytes < 0 {
		return nil, fmt.Errorf("wsupgrade: negative MaxHeaderBytes %d", o.MaxHeaderBytes)
	}
	hosts, err := parseHosts(o.Hosts)
	if err != nil {
		return nil, err
	}
	f := &Forwarder{
		protocols:        []string{"websocket"},
		dial:             o.Dial,
		dialTLS:          o.DialTLS,
		tlsConfig:        o.TLSConfig,
		handshakeTimeout: bound.OrDefault(o.HandshakeTimeout, 10*time.Second),
		headerTimeout:    o.HeaderTimeout,
		maxHeaderBytes:   o.MaxHeaderBytes,
		hosts:            hosts,
		checkOrigin:      o.CheckOrigin,
		registry:         o.Registry,
		observe:          o.Observe,
		limits:           limits{max(0, o.IdleTimeout), max(0, o.MaxLifetime), max(0, o.PingInterval)},
	}
	if o.Protocols != nil {
		f.protocols = slices.Clone(o.Protocols)
	}
	for _, protocol := range f.protocols {
		if !header.Forwardable(protocol) {
			return nil, fmt.Errorf("wsupgrade: protocol %q can't be forwarded", protocol)
		}
	}
	if slices.Contains(f.protocols, AnyProtocol) {
		f.protocols = nil
	}
	if !o.Portable {
		f.loops = newLoops()
	}
	if f.observe == nil {
		f.observe = func(*http.Request) *Observer { return nil }
	}
	if f.maxHeaderBytes == 0 {
		f.maxHeaderBytes = 64 << 10
	}
	if f.checkOrigin == nil {
		f.checkOrigin = sameOrigin
	}
	return f, nil
}

// Protocol returns the allowed protocol that r requests to switch to, "" if r is a plain request.
// For an HTTP/2 request with :protocol it returns that, allowed or not: Forward refuses it. It
// changes nothing.
func (f *Forwarder) Protocol(r *http.Request) string {
	if protocol, ok := extended(r); ok {
		return protocol
	}
	return header.RequestedProtocol(r, f.protocols)
}

func isWebSocket(protocol string) bool { return strings.EqualFold(protocol, "websocket") }
