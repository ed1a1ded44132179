package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/proxyproto"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/upstream"
)

type sessionKey struct{}

// FromContext returns the session of the request that a Balance is given, nil if it is not one of this package.
func FromContext(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// connect makes a connection to a server of the group, to one after the other until one is reached. It returns a status if none is.
func (p *Proxy) connect(ctx context.Context, s *Session, to Upstream) (net.Conn, upstream.Lease, int) {
	group, name := to.Group, to.Name
	request := (&http.Request{RemoteAddr: s.remote}).WithContext(context.WithValue(ctx, sessionKey{}, s))
	var tried []upstream.Lease
	began, tries := time.Now(), 0
	for {
		lease, err := group.Pick(ctx, request, tried...)
		if err != nil {
			s.begin(name)
			s.Error("no live upstreams")
			s.end()
			return nil, lease, statusBadGateway
		}
		if len(tried) == 0 { // the first list of names that are looked up is known now
			tries = p.tries(group)
		}
		a := s.begin(lease.Addr())
		if to.Observe != nil {
			a.ended = to.Observe(a.addr)
		}
		c, status, err := p.reachBy(ctx, s, lease, a, name)
		if err == nil {
			a.mark(&a.connect)
			if !s.udp { // nothing is known of a server of UDP yet
				lease.Succeeded()
			}
			s.logConnected(c)
			return c, lease, status
		}
		a.finish()
		a.observed(true)
		if status != 0 || ctx.Err() != nil {
			lease.Done(upstream.Outcome{Err: &culvert.Error{Kind: culvert.Internal, Err: err}})
			return nil, lease, statusFailed
		}
		lease.Done(upstream.Outcome{Err: &culvert.Error{Kind: culvert.DialFailed, Target: lease.Addr(), Err: err}})
		if lease.OnTrial() {
			s.LogAt(slog.LevelWarn, "upstream server temporarily disabled")
		}
		tried = append(tried, lease)
		tries--
		if tries <= 0 || !p.Next || p.NextTimeout > 0 && time.Since(began) >= p.NextTimeout {
			return nil, lease, statusBadGateway
		}
	}
}

// tries returns how many servers may be tried.
func (p *Proxy) tries(group *upstream.Group) int {
	n := 0
	for t := range group.Targets() {
		if !t.Target.Down {
			n++
		}
	}
	if p.Tries > 0 {
		n = min(n, p.Tries)
	}
	return n
}

// begin records another attempt.
func (s *Session) begin(addr string) *attempt {
	a := newAttempt(addr)
	s.attempts = append(s.attempts, a)
	return a
}

func (s *Session) end() { s.attempts[len(s.attempts)-1].finish() }

// reachBy is reach for a lease. It ends the lease and the attempt if a function of the configuration panics.
func (p *Proxy) reachBy(ctx context.Context, s *Session, lease upstream.Lease, a *attempt, name string) (c net.Conn, status int, err error) {
	returned := false
	defer func() {
		if !returned {
			a.finish()
			a.observed(true)
			lease.Done(upstream.Outcome{Err: errPanicked})
		}
	}()
	c, status, err = p.reach(ctx, s, lease.Addr(), name)
	returned = true
	return c, status, err
}

// reach makes a connection, with TLS if that is configured, and logs why it can't. A status reports that another server would not
// help.
func (p *Proxy) reach(ctx context.Context, s *Session, addr, name string) (net.Conn, int, error) {
	ctx, cancel := context.WithTimeout(ctx, p.ConnectTimeout)
	defer cancel()
	c, err := p.dialer(s).DialContext(ctx, network(addr, s.udp), strings.TrimPrefix(addr, unixPrefix))
	if err != nil {
		if timedOut(err) {
			s.Error("upstream timed out (110: Connection timed out)")
		} else {
			s.Error("connect() failed (" + reason(err) + ")")
		}
		return nil, 0, err
	}
	if p.TLS == nil || s.udp {
		return c, 0, nil
	}
	return p.encrypt(ctx, s, c, name)
}

// encrypt begins TLS.
func (p *Proxy) encrypt(ctx context.Context, s *Session, c net.Conn, name string) (net.Conn, int, error) {
	config, ok := p.TLS(s, name)
	if !ok {
		c.Close()
		return nil, statusFailed, errors.New("no configuration")
	}
	if p.Header > 0 { // in front of TLS
		if _, err := c.Write(p.withHeader(s, nil)); err != nil {
			c.Close()
			return nil, 0, err
		}
	}
	s.action = "SSL handshaking to upstream"
	defer func() { s.action = "connecting to upstream" }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ConnectTimeout)
	defer cancel()
	t := tls.Client(c, config)
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		var verify VerifyError
		switch {
		case errors.As(err, &verify):
			s.Error(verify.Error())
		case timedOut(err):
			s.Error("upstream timed out (110: Connection timed out)")
		default:
			s.Error("SSL_do_handshake() failed (" + err.Error() + ")")
		}
		return nil, 0, err
	}
	return t, 0, nil
}

// VerifyError is why an upstream's certificate is not accepted, in nginx's words. The configuration's VerifyConnection returns it.
type VerifyError string

// Error implements error.
func (e VerifyError) Error() string { return string(e) }

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// reason describes a system's error as nginx does: "111: Connection refused".
func reason(err error) string { return conf.Errno(err) }

func network(addr string, udp bool) string {
	switch {
	case strings.HasPrefix(addr, unixPrefix) && udp:
		return "unixgram"
	case strings.HasPrefix(addr, unixPrefix):
		return "unix"
	case udp:
		return "udp"
	}
	return "tcp"
}

// dialer returns what makes the session's connections. An address that is none is logged, and any is used.
func (p *Proxy) dialer(s *Session) *net.Dialer {
	d := &net.Dialer{}
	text := p.Bind.String(&s.Request)
	if text == "" {
		return d
	}
	at, ok := vars.ParseAddr(text)
	switch {
	case !ok:
		s.Error("invalid local address \"" + text + "\"")
	case s.udp:
		d.LocalAddr = net.UDPAddrFromAddrPort(at)
	default:
		d.LocalAddr = net.TCPAddrFromAddrPort(at)
	}
	return d
}

// clientHeader names the session's client.
func (s *Session) clientHeader() (h proxyproto.Header) {
	h.Client, _ = netip.ParseAddrPort(s.remote)
	h.Server, _ = netip.ParseAddrPort(s.local)
	return h
}

func (s *Session) logConnected(c net.Conn) {
	udp := ""
	if s.udp {
		udp = "udp "
	}
	s.logPlain(levelInfo, udp+"proxy "+localName(c)+" connected to "+s.attempts[len(s.attempts)-1].addr)
}
