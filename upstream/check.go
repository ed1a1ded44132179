package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/internal/random"
)

// Check configures active health checks, which run over the group's transport: over HTTP/1.1 over the connections of
// its requests, so that they count for MaxConnRequests. The zero value only makes a connection to each target, with the
// defaults below.
//
// A target is healthy until Fall checks in a row have failed. A check counts neither as good nor as
// bad if this host has no file descriptor, memory or local port left for it, or if Healthy, or a
// function of the group's Options, panics; the panic is logged with slog.Default().
type Check struct {
	// Path is the path of the GET request that a check sends, with an optional query, in
	// origin form (RFC 9112 section 3.2.1). "" means that a check only makes a
	// connection; Host, Header and Healthy must not be set then.
	Path string
	// Host is the Host field; "" means the target's address.
	Host string
	// Header holds further header fields. Host, Content-Length and hop-by-hop fields
	// except TE are not allowed.
	Header http.Header
	// Healthy reports whether a status code counts as good; nil means 200 to 399. It must be
	// safe for concurrent use.
	Healthy func(status int) bool
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

func (c Check) withDefaults() (Check, error) {
	if err := c.checkRequest(); err != nil {
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

// checkRequest returns an error if the request can't be sent: its failures would otherwise make every
// target unhealthy.
func (c Check) checkRequest() error {
	if c.Path == "" {
		if c.Host != "" || c.Header != nil || c.Healthy != nil {
			return errors.New("Host, Header or Healthy without Path")
		}
		return nil
	}
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("path %q does not begin with /", c.Path)
	}
	if err := http1.CheckLine(http.MethodGet, "", c.Path); err != nil {
		return fmt.Errorf("path %q: %w", c.Path, err)
	}
	if err := http1.CheckLine(http.MethodGet, c.Host, "/"); err != nil {
		return fmt.Errorf("Host: %w", err)
	}
	if strings.Contains(c.Path, "#") {
		return fmt.Errorf("path %q has a fragment", c.Path)
	}
	if _, err := url.ParseRequestURI(c.Path); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	for name, values := range c.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("header: invalid name %q", name)
		}
		if header.IsReserved(name) && !strings.EqualFold(name, "TE") {
			return fmt.Errorf("header: %s is not possible here", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("header: invalid value %q of %s", value, name)
			}
		}
	}
	return nil
}

// checks holds the running checkers.
type checks struct {
	stop map[string]context.CancelFunc // by address
}

// updateCheckers starts and stops checkers, so that each address of s has one,
// unless its target is down. The caller holds g.mu.
func (g *Group) updateCheckers(s *targets) {
	if g.o.Check == nil || g.ctx.Err() != nil {
		return
	}
	wanted := map[string]*member{}
	for _, m := range s.members {
		if !m.Down {
			wanted[m.Addr] = m
		}
	}
	for addr, stop := range g.checks.stop {
		if wanted[addr] == nil {
			stop()
			delete(g.checks.stop, addr)
		}
	}
	for _, m := range s.members { // in their order, so that a simulated history can be repeated
		if wanted[m.Addr] == m && g.checks.stop[m.Addr] == nil {
			ctx, cancel := context.WithCancel(g.ctx)
			g.checks.stop[m.Addr] = cancel
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
		err := g.probeSafely(ctx, addr)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			good, bad = good+1, 0
		case !errs.Local(err) && !errors.As(err, new(*panics.Error)):
			good, bad = 0, bad+1
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
