package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/panics"
)

// checkAgent is the User-Agent of checks whose Header has none, as net/http's transport sends it. It is never written to.
var checkAgent = []string{"Go-http-client/1.1"}

// maxProbeBody bounds how much of a check's response body is read so that its connection can be kept.
const maxProbeBody = 64 << 10

// probeSafely calls probe and returns a panic of a user's function as a *panics.Error, which does not
// count for the target. The panic must not end the program, and there is no request that it could end.
func (g *Group) probeSafely(ctx context.Context, addr string) (err error) {
	defer func() {
		if p, panicked := err.(*panics.Error); panicked {
			panics.Log(nil, "upstream.Check", p.Value, p.Stack)
		}
	}()
	defer panics.Catch(&err)
	return g.probe(ctx, addr)
}

// probe runs one check, which is bad if it returns an error.
func (g *Group) probe(ctx context.Context, addr string) error {
	c := g.o.Check
	ended := ctx.Err
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
	status, err := g.probeStatus(r)
	if err == nil {
		err = ended() // the body may have been cut by Close
	}
	if err == nil && !c.Healthy(status) {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

// probeStatus sends the request of a check over the connections that requests use, and returns the status of its response.
func (g *Group) probeStatus(r *http.Request) (status int, err error) {
	if pool := http1.PoolOf(g.transport); pool != nil {
		if r.Header["User-Agent"] == nil {
			r.Header["User-Agent"] = checkAgent
		}
		call := http1.Call{Request: r, Repeatable: func(*http.Request) bool { return true }}
		if err = call.Prepare(); err == nil {
			return probeOver(pool, &call)
		}
	}
	resp, err := g.transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxProbeBody)
	return resp.StatusCode, nil
}

// probeOver is probeStatus for a call over a pool.
func probeOver(pool *http1.Pool, call *http1.Call) (status int, err error) {
	resp, err := pool.Do(call)
	if err != nil {
		return 0, errors.Unwrap(err)
	}
	defer call.Release() // which closes the connection of a body that was not read to its end
	_, _ = io.CopyN(io.Discard, resp.Body, maxProbeBody)
	return resp.StatusCode, nil
}

// probeDial runs a check without a request.
func (g *Group) probeDial(ctx context.Context, addr http1.Addr) error {
	conn, err := g.o.dialAddr(ctx, addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
