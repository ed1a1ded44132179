package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// tunnelFamily connects clients to servers by CONNECT (ngx_http_tunnel_module.c). A server without tunnel_pass refuses the method.
var tunnelFamily = &family{
	name: "tunnel",
	slot: newSlot(proxySettings{
		connectTimeout: time.Minute,
		method:         vars.Constant(http.MethodGet), // of an exchange that dials and no more
		readTimeout:    time.Minute,
		retry:          proxy.Retry{Errors: true, Timeouts: true},
		sendTimeout:    time.Minute,
	}),
	schemes:   []urlScheme{{}},
	hidden:    []string{"Date", "Server"},
	noContent: true,
	tunnels:   true,
	roundTripper: func(_ *Engine, _ *passRule, t *upstream.Transport, _ *group) http.RoundTripper {
		return tunnelDialer{t}
	},
	outbound: plain,
}

var tunnelModule = module{directives: tunnelFamily.named(tunnelFamily.connections())}

// clientsTarget is the target that the client names.
const clientsTarget = "$host:$request_port"

// tunnelPass compiles "tunnel_pass [target]".
func (f *family) tunnelPass(c *compiler, l *level, d *conf.Directive) error {
	l.server.tunnels = true
	if len(d.Args) == 0 {
		named := *d
		named.Args = []string{clientsTarget}
		d = &named
	}
	return f.passTo(c, l, d)
}

var errSocketTunnel = errors.New("a unix socket")

// checkTunnel refuses the address of a socket that variables lead to: "CONNECT unix:80" is for a host of that name.
func (f *family) checkTunnel(to passTo) error {
	if f.tunnels && strings.HasPrefix(to.address, unixPrefix) {
		return errSocketTunnel
	}
	return nil
}

// tunnelDialer makes connections to servers: its response says that there is one, and has it as its body.
type tunnelDialer struct{ transport *upstream.Transport }

// RoundTrip implements http.RoundTripper.
func (t tunnelDialer) RoundTrip(r *http.Request) (*http.Response, error) {
	conn, err := dialBackend(r.Context(), t.transport, r.URL.Host)
	if err != nil {
		return nil, err
	}
	held := &heldConn{conn: conn}
	exchangeOf(r.Context()).proxy.dialled = held
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: held, Request: r}, nil
}

// heldConn is a connection that is closed with the response, unless a tunnel has taken it.
type heldConn struct{ conn net.Conn }

func (h *heldConn) take() net.Conn {
	conn := h.conn
	h.conn = nil
	return conn
}

// Read implements io.Reader: the response has no content.
func (h *heldConn) Read([]byte) (int, error) { return 0, net.ErrClosed }

// Close implements io.Closer.
func (h *heldConn) Close() error {
	if h.conn == nil {
		return nil
	}
	return h.take().Close()
}

// openTunnel returns a proxy.Options.ModifyResponse that runs the tunnel, as long as the server counts as one that serves the request.
func (e *Engine) openTunnel(s *proxySettings) (func(*proxy.Response), error) {
	connector, err := wsupgrade.New(wsupgrade.Options{
		HandshakeTimeout: s.readTimeout,
		IdleTimeout:      s.readTimeout,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return exchangeOf(ctx).proxy.dialled.take(), nil
		},
		Registry: e.tunnels,
	})
	if err != nil {
		return nil, err
	}
	connect, err := connector.Connect(func(r *http.Request) (string, error) { // the configuration has chosen it
		return exchangeOf(r.Context()).proxy.target, nil
	})
	if err != nil {
		return nil, err
	}
	return func(a *proxy.Response) {
		x := exchangeOf(a.In.Context())
		held := &heldConn{conn: x.proxy.dialled.take()}
		x.proxy.dialled, x.proxy.target = held, held.conn.RemoteAddr().String()
		a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			defer held.Close() // where it was not taken
			connect.ServeHTTP(w, x.HTTP)
		}))
	}, nil
}

// checkConnect refuses a CONNECT of a server that has no tunnels, and one with a body, which nothing distinguishes from the bytes of the
// tunnel.
func (x *exchange) checkConnect() {
	switch r := x.HTTP; {
	case r.ProtoMajor != 1 || r.ProtoMinor < 1 || !x.server.tunnels:
		x.refuse(http.StatusMethodNotAllowed, "client sent CONNECT method")
	case r.ContentLength != 0:
		x.refuse(http.StatusBadRequest, "client sent CONNECT request with body")
	}
}

// proxyCredentials has the credentials of a CONNECT, which are those for a proxy, checked like others (RFC 9110 section 11.7.2): it runs
// before the fields are removed that are about one connection.
type proxyCredentials struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (h proxyCredentials) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		delete(r.Header, "Authorization")
		if lines := r.Header["Proxy-Authorization"]; lines != nil {
			r.Header["Authorization"] = lines
		}
	}
	h.next.ServeHTTP(w, r)
}

func init() {
	clientside.RegisterReturner(func(h proxyCredentials) bool { return clientside.Returns(h.next) })
}
