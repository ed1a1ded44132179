package engine

import (
	"crypto/sha256"
	"errors"
	"net"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// transportKey identifies a transport: its connections are shared by all locations with the same
// settings.
type transportKey struct {
	scheme              string
	http2               bool
	connect, send, read time.Duration
	bind                string // proxy_bind
	keepalive           keepaliveRule
	tls                 tlsRule
	name                string // that the certificate is for
	cert, key           string // files, of the proxy's own certificate
	certID              certID // tells versions of a certificate apart
}

// certID is a certs.Loaded's.
type certID [sha256.Size]byte

// maxTransports bounds the transports that variables create.
const maxTransports = 256

// transport returns the transport for a key.
func (e *Engine) transport(key transportKey) (*upstream.Transport, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t, ok := e.transports[key]; ok {
		return t, nil
	}
	o := upstream.Options{
		Scheme:          key.scheme,
		DialTimeout:     key.connect,
		WriteTimeout:    nonZero(key.send),
		HeaderTimeout:   nonZero(key.read),
		MaxIdleConns:    key.keepalive.max,
		IdleTimeout:     key.keepalive.timeout,
		MaxConnAge:      key.keepalive.time,
		MaxConnRequests: key.keepalive.requests,
	}
	switch {
	case key.http2 && key.scheme == "https":
		o.Protocol = upstream.HTTP2
	case key.http2:
		o.Protocol = upstream.H2C
	}
	if key.keepalive.off {
		o.MaxConnRequests = 1
	}
	if key.scheme == "https" {
		config, err := e.upstreamTLS(key)
		if err != nil {
			return nil, err
		}
		o.TLSConfig = config
	}
	if key.bind != "" {
		local, ok := bindAddress(key.bind)
		if !ok {
			return nil, errors.New("invalid local address \"" + key.bind + "\"")
		}
		o.Dialer = &net.Dialer{LocalAddr: local, KeepAlive: 30 * time.Second}
	}
	t, err := upstream.NewTransport(o)
	if err != nil {
		return nil, err
	}
	if len(e.transports) >= maxTransports {
		for k, old := range e.transports { // any one: it is created again when it is needed
			old.CloseIdleConnections()
			delete(e.transports, k)
			break
		}
	}
	e.transports[key] = t
	return t, nil
}

// nonZero returns d, but at least a millisecond: 0 is no time to nginx, and a default to the
// library.
func nonZero(d time.Duration) time.Duration { return max(d, time.Millisecond) }

// logNoLive logs that no server of an upstream is live.
func (x *exchange) logNoLive(group string) {
	x.logAt(levelError, errNoLive.Error()+" while connecting to upstream", "http://"+group+x.RequestURI)
}

// logProxy logs why there is no whole response of an upstream of a name.
func logProxy(x *exchange, group string, err *culvert.Error) {
	upstream := ""
	if err.Target != "" {
		upstream = "http://" + err.Target + x.RequestURI
	}
	if err.Kind == culvert.ClientGone {
		x.logAt(levelInfo, "client prematurely closed connection", upstream)
		return
	}
	if err.Kind == culvert.NoTarget || err.Kind == culvert.Busy {
		x.logNoLive(group)
		return
	}
	x.logAt(levelError, err.Error()+" while reading response header from upstream", upstream)
}
