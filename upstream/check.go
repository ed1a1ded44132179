package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/internal/random"
)

// Check asks a target at intervals how it is, over the group's transport.
// Targets count as well until they have failed Fall times. A check that could not be made since this
// host has no descriptor, memory or local port left counts neither way, and neither does one in which Healthy, or a function of
// the group's Options, panics: that is logged with slog.Default().
type Check struct {
	// Path is the path, with a query if need be, that is requested by GET, in
	// origin form (RFC 9112 section 3.2.1). "" means that a connection which can be
	// made is enough; Host, Header and Healthy must not be set then.
	Path string
	// Host is the Host field; "" means the target's address.
	Host string
	// Header are further header fields. Host, Content-Length and hop-by-hop fields
	// are not possible, except for TE.
	Header http.Header
	// Healthy reports whether a status is a good response; nil means 200 to 399.
	Healthy func(status int) bool
	// Interval is the time between two checks; 0 means 5 seconds.
	Interval time.Duration
	// Jitter is the part of the interval by which each wait is longer or shorter
	// at random, so that gateways do not ask all at once; 0 means 0.1, a
	// negative number none. The most is 1.
	Jitter float64
	// Timeout bounds one check; 0 means 2 seconds.
	Timeout time.Duration
	// Rise is how many good checks in a row bring a target back, its failures (Target.MaxFails)
	// forgotten; 0 means 2.
	Rise int
	// Fall is how many bad checks in a row take a target out; 0 means 3.
	Fall int
	// OnChange is told when a target is taken out (healthy is false, err the
	// last failure) or brought back. nil means nobody is. Group.Close waits for it, so it
	// must not call that; Group.Set is possible. A panic of it is logged with slog.Default().
	OnChange func(addr string, healthy bool, err error)
}

func (c Check) withDefaults() (Check, error) {
	if err := c.checkRequest(); err != nil {
		return c, fmt.Errorf("check: %w", err)
	}
	switch {
	case c.Interval < 0 || c.Timeout < 0:
		return c, errors.New("check: Interval or Timeout is negative")
	case c.Rise < 0 || c.Fall < 0:
		return c, errors.New("check: Rise or Fall is negative")
	case c.Jitter > 1:
		return c, fmt.Errorf("check: Jitter %v is over 1", c.Jitter)
	case math.IsNaN(c.Jitter):
		return c, errors.New("check: Jitter is not a number")
	}
	set(&c.Interval, 5*time.Second)
	set(&c.Timeout, 2*time.Second)
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

// checkRequest returns why the request can't be sent: as a failure of the targets it would take all
// of them out.
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
		if head.IsReserved(name) && !strings.EqualFold(name, "TE") {
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

// checks are the checkers that run, by address.
type checks struct {
	stop map[string]context.CancelFunc
}

// checkAll starts and stops checkers, so that each address of s has one. The
// caller holds g.mu.
func (g *Group) checkAll(s *targets) {
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
	for _, m := range s.members { // in their order, so that a simulated history repeats
		if wanted[m.Addr] == m && g.checks.stop[m.Addr] == nil {
			ctx, cancel := context.WithCancel(g.ctx)
			g.checks.stop[m.Addr] = cancel
			g.running.Go(func() { g.check(ctx, m.Addr, m.state) })
		}
	}
}

// check asks one address until ctx ends.
func (g *Group) check(ctx context.Context, addr string, s *state) {
	good, bad := 0, 0
	timer := time.NewTimer(g.pause(true))
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
		case !fault.Local(err) && !errors.As(err, new(*panicError)):
			good, bad = 0, bad+1
		}
		switch {
		case s.sick.Load() && good >= g.o.Check.Rise:
			g.bringBack(addr, s)
		case !s.sick.Load() && bad >= g.o.Check.Fall:
			s.checked.Store(now())
			s.sick.Store(true)
			g.wakeQueue() // those that wait for this target alone
			g.tellChange(addr, false, err)
		}
		timer.Reset(g.pause(false))
	}
}

// pause is the time to the next check. The first ones are spread over the
// interval.
func (g *Group) pause(first bool) time.Duration {
	c := g.o.Check
	if first {
		return time.Duration(random.Float64() * c.Jitter * float64(c.Interval))
	}
	return time.Duration(float64(c.Interval) * (1 + c.Jitter*(2*random.Float64()-1)))
}

func (g *Group) bringBack(addr string, s *state) {
	if m := s.current.Load(); m != nil {
		m.recover()
	}
	s.mu.Lock()
	s.forgive()
	s.mu.Unlock()
	s.sick.Store(false)
	g.wakeQueue()
	g.tellChange(addr, true, nil)
}

func (g *Group) tellChange(addr string, healthy bool, err error) {
	if f := g.o.Check.OnChange; f != nil {
		defer panics.Contain(nil, "upstream.Check.OnChange")
		f(addr, healthy, err)
	}
}

// maxProbeBody bounds what is read of a check's answer, to keep its connection.
const maxProbeBody = 64 << 10

// probeSafely is probe of which a panic, of a function that the user has given, is an error. It says nothing about the
// target, and no request is there that it could end.
func (g *Group) probeSafely(ctx context.Context, addr string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
			panics.Log(nil, "upstream.Check", v, debug.Stack())
		}
	}()
	return g.probe(ctx, addr)
}

// probe asks once.
func (g *Group) probe(ctx context.Context, addr string) error {
	c := g.o.Check
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	target := addrOf(addr)
	if c.Path == "" {
		return g.probeDial(ctx, target)
	}
	r, err := http.NewRequestWithContext(withSocket(ctx, target), http.MethodGet, g.o.Scheme+"://"+hostOf(target)+c.Path, nil)
	if err != nil {
		return err
	}
	for name, values := range c.Header {
		r.Header[name] = values
	}
	r.Host = c.Host
	resp, err := g.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxProbeBody)
	if !c.Healthy(resp.StatusCode) {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func (g *Group) probeDial(ctx context.Context, addr http1.Addr) error {
	conn, err := g.o.dialAddr(ctx, addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
