package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/panics"
)

// checkAgent is the User-Agent of checks whose Header has none, as net/http's transport sends it. It is never written to.
var checkAgent = []string{"Go-http-client/1.1"}

// maxProbeBody bounds how much of a check's response body is read, for Check.HealthyBody and so that its
// connection can be kept.
const maxProbeBody = 64 << 10

// probeSafely calls probe and returns a panic of a user's function as a *panics.Error, which does not
// count for the target. The panic must not end the program, and there is no request that it could end.
func (g *Group) probeSafely(ctx context.Context, addr string, s *state) (err error) {
	defer func() {
		if p, panicked := err.(*panics.Error); panicked {
			panics.Log(nil, "upstream.Check", p.Value, p.Stack)
		}
	}()
	defer panics.Catch(&err)
	return g.probe(ctx, addr, s)
}

// probe runs one check, which is bad if it returns an error.
func (g *Group) probe(ctx context.Context, addr string, s *state) error {
	c := g.o.Check
	ended := ctx.Err
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	m := s.current.Load()
	target := m.addr
	if c.TLSConfig != nil || c.Scheme != "" && c.Scheme != m.Scheme {
		target.TLS = nil
	}
	if c.Port != 0 {
		host, _, _ := net.SplitHostPort(addr)
		target.Name = net.JoinHostPort(host, strconv.Itoa(c.Port))
	}
	target.Secure = c.scheme(m.Scheme) == "https"
	switch {
	case c.Func != nil:
		return cmp.Or(c.Func(ctx, m.Target), ctx.Err())
	case c.GRPC:
		return g.probeGRPC(ctx, target)
	case c.Path == "":
		return g.probeDial(ctx, target)
	}
	r, err := g.probeRequest(ctx, target, c.Method, c.Path, nil)
	if err != nil {
		return err
	}
	status, body, err := g.probeResponse(r)
	if err == nil {
		err = ended() // the body may have been cut by Close
	}
	if err == nil && !c.Healthy(status) {
		err = fmt.Errorf("status %d", status)
	}
	if err == nil && c.HealthyBody != nil {
		err = body.check(c)
	}
	return err
}

// probeRequest returns the request of a check.
func (g *Group) probeRequest(ctx context.Context, addr http1.Addr, method, path string, body []byte) (*http.Request, error) {
	c := g.o.Check
	scheme := "http"
	if addr.Secure {
		scheme = "https"
	}
	url := scheme + "://" + hostOf(addr) + path
	var content io.Reader // which NewRequest must not take for an empty body if there is none
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(withReach(ctx, addr), method, url, content)
	if err != nil {
		return nil, err
	}
	for name, values := range c.Header {
		r.Header[name] = values
	}
	r.Host = c.Host
	return r, nil
}

// probed is what was read of the body of a check's response.
type probed struct {
	content []byte
	err     error // not io.EOF
}

func (p probed) check(c *Check) error {
	switch {
	case p.err != nil:
		return fmt.Errorf("body: %w", p.err)
	case !c.HealthyBody(p.content):
		return fmt.Errorf("unexpected body %.64q", p.content)
	}
	return nil
}

// readProbed reads the body of a check's response, and keeps it if Check.HealthyBody needs it.
func (g *Group) readProbed(body io.Reader) (p probed) {
	body = io.LimitReader(body, maxProbeBody)
	if g.o.Check.HealthyBody == nil {
		_, p.err = io.Copy(io.Discard, body)
		return p
	}
	p.content, p.err = io.ReadAll(body)
	return p
}

// probeResponse sends the request of a check over the connections that requests use, or those of checks, and
// returns the status and the body of its response.
func (g *Group) probeResponse(r *http.Request) (status int, body probed, err error) {
	if pool := http1.PoolOf(g.checkTransport); pool != nil {
		if r.Header["User-Agent"] == nil {
			r.Header["User-Agent"] = checkAgent
		}
		call := http1.Call{Request: r, Repeatable: func(*http.Request) bool { return true }}
		if err = call.Prepare(); err == nil {
			return g.probeOver(pool, &call)
		}
	}
	resp, err := g.checkTransport.RoundTrip(r)
	if err != nil {
		return 0, body, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, g.readProbed(resp.Body), nil
}

// probeOver is probeResponse for a call over a pool.
func (g *Group) probeOver(pool *http1.Pool, call *http1.Call) (status int, body probed, err error) {
	resp, err := pool.Do(call)
	if err != nil {
		return 0, body, errors.Unwrap(err)
	}
	defer call.Release() // which closes the connection of a body that was not read to its end
	return resp.StatusCode, g.readProbed(resp.Body), nil
}

// probeDial runs a check without a request.
func (g *Group) probeDial(ctx context.Context, addr http1.Addr) error {
	addr.Preface = g.o.proxyProtocolOfChecks().preface(client.Ends{Own: true})
	conn, err := g.o.dialAddr(ctx, addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
