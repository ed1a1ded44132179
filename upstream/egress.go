package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/header"
)

// EgressOptions configures DialThrough.
type EgressOptions struct {
	// DialContext makes the connections to the proxy, for instance those of another DialThrough; nil means a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSConfig configures TLS to an https proxy; nil means that its certificate is verified against the system's roots and
	// its host. It is not used for the targets.
	TLSConfig *tls.Config
	// Header holds further header fields of CONNECT requests, Proxy-Authorization for instance. They are sent to
	// the proxy only.
	Header http.Header
}

// EgressError is the error of a connection that could not be made through an egress proxy.
//
// If that is not what the target did, its chain has a *culvert.Error of Kind Internal (500), which does not count for the target,
// nor for its checks, and is not retried on another one: the proxy can't be reached, it does not speak the protocol, it
// requires other credentials, it is silent before the target is named to it, or it refuses the request (a status below 500;
// "connection not allowed by ruleset" or "command not supported" of SOCKS). A proxy that is silent behind the request may wait for the target: that is a Timeout.
type EgressError struct {
	// Proxy is the proxy's URL, without credentials.
	Proxy string
	// Status is the status code of the response to CONNECT, 0 if there was none.
	Status int
	// Err is the cause.
	Err error
}

// Error returns the proxy's URL and the cause's text.
func (e *EgressError) Error() string { return "through " + e.Proxy + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EgressError) Unwrap() error { return e.Err }

// DialThrough returns a function for Options.DialContext that makes connections through an egress proxy, to which the URL
// leads: by CONNECT (RFC 9110 section 9.3.6) if its scheme is http or https, which is how the proxy itself is reached, or by
// SOCKS5 (RFC 1928) if that is socks5 or socks5h. The URL's user and password are sent by the Basic scheme (RFC 7617), or RFC
// 1929 for SOCKS5; without https they are readable on the network. Without a port, 80, 443 or 1080 is meant.
//
// The proxy resolves the names of targets, so Options.AllowAddr can't be set: the proxy must refuse what must
// not be reached. Unix sockets can't be reached. TLS to a target is made inside of the connection, and the
// PROXY protocol's header is sent to the target. A context that ends ends the connection's making; Options.DialTimeout bounds
// it so. At most 64 KiB of the response to CONNECT are read, and nothing that follows it.
//
// The function's errors are *EgressError. It is safe for concurrent use by multiple goroutines.
func DialThrough(proxyURL string, o EgressOptions) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	u, err := url.Parse(proxyURL)
	if err != nil { // whose text has the password
		return nil, errors.New("upstream: the URL of the egress proxy can't be parsed")
	}
	e := &egress{o: o, user: u.User}
	if err := e.locate(u); err != nil {
		return nil, fmt.Errorf("upstream: egress proxy %q: %w", u.Redacted(), err)
	}
	if err := e.prepare(); err != nil {
		return nil, fmt.Errorf("upstream: egress proxy %q: %w", e.name, err)
	}
	return e.dial, nil
}

// egress is an egress proxy.
type egress struct {
	o    EgressOptions
	user *url.Userinfo
	name string // the URL without credentials
	addr string
	tls  *tls.Config // nil: no TLS to the proxy

	// open requests a connection to a target over one to the proxy.
	open func(ctx context.Context, c net.Conn, addr string) error
}

// locate finds out where the proxy is.
func (e *egress) locate(u *url.URL) error {
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	port := ports[u.Scheme]
	switch {
	case port == "":
		return fmt.Errorf("scheme %q is none of http, https, socks5 and socks5h: write http://host:port", u.Scheme)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL of a proxy has neither a path nor a query: write scheme://host:port")
	case u.Port() != "":
		port = u.Port()
	}
	e.addr = net.JoinHostPort(u.Hostname(), port)
	e.name = u.Scheme + "://" + e.addr
	if _, _, err := splitHostPort(e.addr); err != nil {
		return err
	}
	switch u.Scheme {
	case "https":
		if e.tls = e.o.TLSConfig.Clone(); e.tls == nil {
			e.tls = &tls.Config{}
		}
		if e.tls.ServerName == "" {
			e.tls.ServerName = u.Hostname()
		}
		e.tls.NextProtos = []string{"http/1.1"}
		e.open = e.connect
	case "http":
		e.open = e.connect
	default:
		e.open = e.socks
	}
	return nil
}

// prepare checks the options, and adds the credentials to the header.
func (e *egress) prepare() error {
	if e.o.TLSConfig != nil && e.tls == nil {
		return errors.New("TLSConfig needs the scheme https")
	}
	if e.o.DialContext == nil {
		e.o.DialContext = new(net.Dialer).DialContext
	}
	if strings.HasPrefix(e.name, "socks") {
		if e.o.Header != nil {
			return errors.New("SOCKS5 has no Header")
		}
		return nil
	}
	fields := e.o.Header.Clone()
	if fields == nil {
		fields = http.Header{}
	}
	for name, values := range fields {
		if !httpguts.ValidHeaderFieldName(name) || header.IsReserved(name) && !strings.EqualFold(name, "Proxy-Authorization") {
			return fmt.Errorf("header: %q is not possible here", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("header: invalid value of %s", name)
			}
		}
	}
	if e.user != nil {
		if fields.Get("Proxy-Authorization") != "" {
			return errors.New("credentials in the URL and in Header")
		}
		password, _ := e.user.Password()
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(e.user.Username(), password)
		fields["Proxy-Authorization"] = r.Header["Authorization"]
	}
	e.o.Header = fields
	return nil
}

// failure returns the error of a dial. own reports whether it is not what the target did.
func (e *egress) failure(own bool, status int, err error) error {
	if own {
		err = &culvert.Error{Kind: culvert.Internal, Err: err}
	}
	return &EgressError{Proxy: e.name, Status: status, Err: err}
}

// dial makes a connection to addr through the proxy.
func (e *egress) dial(ctx context.Context, network, addr string) (made net.Conn, err error) {
	if addr, err = authority(network, addr); err != nil {
		return nil, e.failure(true, 0, err)
	}
	c, err := e.o.DialContext(ctx, "tcp", e.addr)
	switch {
	case err != nil:
		return nil, e.failure(true, 0, err)
	case c == nil:
		return nil, e.failure(true, 0, errNilConn)
	}
	raw := c
	defer func() {
		if made == nil { // also where a method of the connection panics
			raw.Close()
		}
	}()
	if e.tls != nil {
		secure := tls.Client(c, e.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, e.failure(true, 0, err)
		}
		c = secure
	}
	if err := e.open(ctx, c, addr); err != nil {
		return nil, err
	}
	return c, nil
}

// authority returns the address of a target as it is sent to the proxy.
func authority(network, addr string) (string, error) {
	if !strings.HasPrefix(network, "tcp") {
		return "", fmt.Errorf("an address of network %q can't be reached by a proxy", network)
	}
	host, port, err := splitHostPort(addr)
	if err != nil {
		return "", err
	}
	if strings.Contains(host, "%") {
		return "", fmt.Errorf("the zone of %q is one of this host", host)
	}
	if !isASCII(host) {
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 }) }

// interruptible calls f, which uses c, and makes the methods of c fail when ctx ends. It returns ctx's error then.
func interruptible(ctx context.Context, c net.Conn, f func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(deadline.Past) })
	err := f()
	if !stop() {
		return ctx.Err()
	}
	return err
}
