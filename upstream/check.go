package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/internal/random"
)

// Check configures active health checks. A check makes a connection to the target, the zero value; sends a request
// (Path); makes a gRPC health check (GRPC); or calls a function (Func). These are alternatives: New returns an error for
// fields that do not go together.
//
// Requests run over the group's transport: over HTTP/1.1 over the connections of its requests, so that they count for
// MaxConnRequests. With a Scheme or TLSConfig, or GRPC in a group of HTTP1, they have connections of their own, with the
// group's other options. Redirects are not followed.
//
// A target is healthy until Fall checks in a row have failed. A check counts neither as good nor as
// bad if this host has no file descriptor, memory or local port left for it, or if Healthy, HealthyBody, Func, or a
// function of the group's Options, panics; the panic is logged with slog.Default(). Status.CheckErr and OnChange
// have the reason why a check has failed.
type Check struct {
	// Path is the path of the request that a check sends, with an optional query, in
	// origin form (RFC 9112 section 3.2.1). "" means that a check sends no such request;
	// Method, Healthy and HealthyBody must not be set then, nor, without GRPC, Scheme, TLSConfig, Host and Header.
	Path string
	// Method is the method of that request, which has no body, and may be sent twice if a connection that was
	// kept has ended. "" means GET. CONNECT is not possible.
	Method string
	// Port is the port of the targets' hosts to which checks connect, from 1 to 65535; 0 means each target's own. A
	// target that is a unix socket has none: New and Set return an error.
	Port int
	// Scheme is "http" or "https"; "" means Options.Scheme. With another scheme than that one, checks use
	// HTTP/1.1, and GRPC HTTP/2.
	Scheme string
	// TLSConfig configures the TLS connections of checks, for instance their ServerName, and requires https. nil
	// means Options.TLSConfig.
	TLSConfig *tls.Config
	// Host is the Host field, or :authority; "" means the address that the check connects to. It is not
	// the name that a certificate is verified for, which is TLSConfig.ServerName.
	Host string
	// Header holds further header fields. Host, Content-Length and hop-by-hop fields
	// except TE are not allowed.
	Header http.Header
	// Healthy reports whether a status code counts as good; nil means 200 to 399. It must be
	// safe for concurrent use.
	Healthy func(status int) bool
	// HealthyBody, if not nil, reports whether the body of a response counts as good, for instance the method Match
	// of a *regexp.Regexp. It is called if the status does, with at most the first 64 KiB, which are valid until it
	// returns. A body that ends before its length is bad. It must be safe for concurrent use. HEAD has no body for it.
	HealthyBody func(body []byte) bool
	// GRPC makes each check a call of grpc.health.v1.Health/Check (github.com/grpc/grpc/blob/master/doc/health-checking.md)
	// over HTTP/2, cleartext or TLS by the scheme. The status SERVING alone is good; so a server without that
	// service is bad. Path must be "".
	GRPC bool
	// GRPCService is the name of the service that GRPC checks; "" means the server as a whole. It is at most 1024 bytes
	// of UTF-8.
	GRPCService string
	// Func, if not nil, is the check: it is good if Func returns nil before ctx ends, which it does after Timeout
	// and when the group is closed. Func must return then: the target's next check, and Close, wait for it. It must be
	// safe for concurrent use, and not call Close. No other field about the kind of check may be set.
	Func func(ctx context.Context, target Target) error
	// Interval is the time between two checks; 0 means 5 seconds.
	Interval time.Duration
	// Jitter is the fraction of the interval, up to 1, by which each wait is longer or
	// shorter at random, so that gateways do not check a target all at once; 0 means
	// 0.1, a negative number none.
	Jitter float64
	// Timeout bounds one check; 0 means 2 seconds.
	Timeout time.Duration
	// Rise is how many good checks in a row make a target healthy again; its failures
	// (Target.MaxFails) are forgotten then. 0 means 2.
	Rise int
	// Fall is how many bad checks in a row make a target unhealthy; 0 means 3.
	Fall int
	// OnChange, if not nil, is called when a target becomes unhealthy, with the last
	// failure as err, or healthy again, with a nil err. Calls for different targets may be
	// concurrent. It may call Group.Set, but not Group.Close, which waits for it. A panic
	// of it is logged with slog.Default().
	OnChange func(addr string, healthy bool, err error)
}

// withDefaults checks c, whose group has the given scheme, and fills its defaults in.
func (c Check) withDefaults(scheme string) (Check, error) {
	if err := c.checkRequest(scheme); err != nil {
		return c, fmt.Errorf("check: %w", err)
	}
	switch {
	case c.Interval < 0:
		return c, errors.New("check: Interval is negative")
	case c.Rise < 0 || c.Fall < 0:
		return c, errors.New("check: Rise or Fall is negative")
	case c.Jitter > 1:
		return c, fmt.Errorf("check: Jitter %v is over 1", c.Jitter)
	case math.IsNaN(c.Jitter):
		return c, errors.New("check: Jitter is not a number")
	}
	set(&c.Interval, 5*time.Second)
	c.Interval = min(c.Interval, bound.None) // to which the jitter can be added
	c.Timeout = bound.OrDefault(c.Timeout, 2*time.Second)
	set(&c.Jitter, 0.1)
	set(&c.Rise, 2)
	set(&c.Fall, 3)
	if c.Jitter < 0 {
		c.Jitter = 0
	}
	if c.Healthy == nil {
		c.Healthy = func(status int) bool { return status >= 200 && status <= 399 }
	}
	return c, nil
}

// checks holds the running checkers.
type checks struct {
	stop map[string]context.CancelFunc // by the target's key
}

// updateCheckers starts and stops checkers, so that each address of s has one,
// unless its target is down. The caller holds g.mu.
func (g *Group) updateCheckers(s *targets) {
	if g.o.Check == nil || g.ctx.Err() != nil {
		return
	}
	wanted := map[string]*member{}
	for _, m := range s.members {
		if !m.isDown() {
			wanted[m.key()] = m
		}
	}
	for key, stop := range g.checks.stop {
		if wanted[key] == nil {
			stop()
			delete(g.checks.stop, key)
		}
	}
	for _, m := range s.members { // in their order, so that a simulated history can be repeated
		if wanted[m.key()] == m && g.checks.stop[m.key()] == nil {
			ctx, cancel := context.WithCancel(g.ctx)
			g.checks.stop[m.key()] = cancel
			g.running.Go(func() { g.runChecks(ctx, m.Addr, m.state) })
		}
	}
}

// runChecks checks one address at intervals until ctx ends.
func (g *Group) runChecks(ctx context.Context, addr string, s *state) {
	good, bad := 0, 0
	timer := time.NewTimer(g.checkDelay(true))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := g.probeSafely(ctx, addr, s)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			good, bad = good+1, 0
			s.checkErr.Store(nil)
		case !ownFault(err) && !errors.As(err, new(*panics.Error)):
			good, bad = 0, bad+1
			s.checkErr.Store(&err)
		}
		switch {
		case s.unhealthy.Load() && good >= g.o.Check.Rise:
			g.markHealthy(addr, s)
		case !s.unhealthy.Load() && bad >= g.o.Check.Fall:
			s.checked.Store(now())
			g.markUnhealthy(s)
			g.wakeQueue() // requests that wait for this target alone fail now
			g.notifyChange(addr, false, err)
		}
		timer.Reset(g.checkDelay(false))
	}
}

// checkDelay returns the time until the next check. First checks are spread over
// Jitter's fraction of the interval.
func (g *Group) checkDelay(first bool) time.Duration {
	c := g.o.Check
	if first {
		return time.Duration(random.Float64() * c.Jitter * float64(c.Interval))
	}
	return time.Duration(float64(c.Interval) * (1 + c.Jitter*(2*random.Float64()-1)))
}

// markHealthy makes the target at addr healthy again, and forgets its failures.
func (g *Group) markHealthy(addr string, s *state) {
	if m := s.current.Load(); m != nil {
		m.startSlowStart()
	}
	s.mu.Lock()
	s.resetFailures()
	s.ejections.Store(0)
	s.mu.Unlock()
	s.unhealthy.Store(false)
	g.recount()
	g.wakeQueue()
	g.notifyChange(addr, true, nil)
}

func (g *Group) notifyChange(addr string, healthy bool, err error) {
	if f := g.o.Check.OnChange; f != nil {
		defer panics.Contain(nil, "upstream.Check.OnChange")
		f(addr, healthy, err)
	}
}

// ownFault reports whether a check has failed by what this host lacks, or by an egress proxy.
func ownFault(err error) bool {
	e := errs.As(err)
	return errs.Local(err) || e != nil && e.Kind == culvert.Internal
}
