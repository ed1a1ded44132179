package simulate

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Passage is a request's way through the gateway, as a program sees it that uses the library: by the hooks of
// package proxy, the record of package filters, and the connections that are dialled. All moments are counted from
// the history's beginning; 0 means never.
type Passage struct {
	Token   uint32
	Method  string
	Peer    string // the client's end of the connection
	Upgrade bool
	Body    bool // the request may have a body

	Entered   time.Duration // the outermost filter was called
	Proxied   time.Duration // the proxy was called
	Picking   time.Duration // Options.Rewrite was called: a target is picked next
	Attempts  []Attempt
	FailedAt  time.Duration // Options.OnError was called
	Failure   *culvert.Error
	Returned  time.Duration // the proxy returned
	Left      time.Duration // the outermost filter returned
	Silent    bool          // the outermost filter panicked, and there is no record of a failure
	TimedOut  bool          // the context's time had ended when the proxy returned
	TunnelEnd time.Duration // the gateway closed the connection of a tunnel to its target
	tunnel    *tunnelConn   // the last connection for an upgrade

	Named        []string // the targets that the request has named, if requests do
	Lists        uint32   // of a filter's own request: the token of the watch that it is for
	DialPanicked bool     // DialContext has panicked for the request
	Raised       bool     // a hook has panicked with a value of its own
	dials        int      // how often DialContext was called
}

// Attempt is a culvert.Attempt whose moments are counted from the history's beginning.
type Attempt struct {
	culvert.Attempt
	Began, Ended time.Duration
}

// sightOf returns the Sight of the request to which the ith attempt has received the response; nil if its target got none.
// A request that is sent once more, since a kept connection has ended, is seen twice within one attempt, and one whose dial
// fails is not seen: the numbers of attempts and sights are not the same.
func (j *Journal) sightOf(p *Passage, i int) (last *Sight) {
	a := &p.Attempts[i]
	for _, s := range j.sights[p.Token] {
		if at := s.At.Sub(j.start); s.Target == a.Target && at >= a.Began && at <= a.Ended {
			last = s
		}
	}
	return last
}

// passageKey is the context key of a *Passage.
type passageKey struct{}

// passageOf returns the passage of a request, nil if it has none.
func passageOf(ctx context.Context) *Passage {
	p, _ := ctx.Value(passageKey{}).(*Passage)
	return p
}

// now returns the time since the history's beginning.
func (j *Journal) now() time.Duration { return time.Since(j.start) }

// enter is the outermost filter.
func (g *gateway) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.serving.Add(1)
		defer g.serving.Add(-1)
		token, _ := tokenOf(r.URL.Path)
		p := &Passage{Token: token, Method: r.Method, Peer: r.RemoteAddr, Upgrade: r.Header.Get("Upgrade") != "" || r.Method == http.MethodConnect, Body: r.ContentLength != 0, Entered: g.journal.now()}
		g.journal.mu.Lock()
		g.journal.passages = append(g.journal.passages, p)
		g.journal.mu.Unlock()
		if own, ok := w.(*guarded); ok {
			own.passage = p
		}
		ctx, record := filters.WithResult(context.WithValue(r.Context(), passageKey{}, p))
		returned := false
		defer func() {
			p.Left, p.Silent = g.journal.now(), !returned && record.Err == nil
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
		returned = true
	})
}

// observe is the innermost filter, around the proxy.
func (g *gateway) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = g.listing(r)
		p := passageOf(r.Context())
		if p == nil || p.Proxied != 0 { // a Mirror's copy, or a second call
			next.ServeHTTP(w, r)
			return
		}
		p.Proxied = g.journal.now()
		ctx, record := filters.WithResult(g.traced(r.Context(), p.Token))
		defer func() {
			p.Returned = g.journal.now()
			p.TimedOut = context.Cause(ctx) == context.DeadlineExceeded || ctx.Err() == context.DeadlineExceeded
			for _, t := range record.Attempts {
				began := t.Start.Sub(g.journal.start)
				p.Attempts = append(p.Attempts, Attempt{Attempt: t, Began: began, Ended: began + t.Total})
			}
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// picking is the proxy's Rewrite: a target is picked after it.
func (g *gateway) picking(o *proxy.Outbound) {
	token, _ := tokenOf(o.In.URL.Path)
	e := g.journal.exchanges[token]
	g.raise(o.In, RaiseRewrite)
	if e != nil && e.Panics {
		panic(http.ErrAbortHandler)
	}
	if p := passageOf(o.In.Context()); p != nil {
		p.Picking = g.journal.now()
	}
	o.SetXForwarded()
	if e != nil && e.Broken {
		o.Out.Header["X-Broken"] = []string{"a\r\nX-Sent: b"}
	}
}

// failed is the proxy's OnError.
func (g *gateway) failed(r *http.Request, e *culvert.Error) {
	g.journal.Note("gateway", "%s: %v", r.URL.Path, e)
	g.journal.told(r.URL.Path)
	if p := passageOf(r.Context()); p != nil {
		p.FailedAt, p.Failure = g.journal.now(), e
	}
	g.raise(r, RaiseError)
}

// dialTunnel dials a target for an upgrade, and notes when the gateway closes the connection.
func (g *gateway) dialTunnel(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := g.group.Dial
	if g.dynamic != nil {
		dial = upstream.Dial
	}
	c, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	inner, ok := c.(*socket)
	if !ok {
		return c, nil // a real socket must not be wrapped
	}
	t := &tunnelConn{Conn: inner.Conn, journal: g.journal, passage: passageOf(ctx)}
	if p := t.passage; p != nil {
		g.journal.mu.Lock()
		p.tunnel, p.TunnelEnd = t, 0 // the target of an earlier attempt has opened no tunnel
		g.journal.mu.Unlock()
	}
	return t, nil
}

// tunnelConn is the gateway's end of a tunnel's connection to its target.
type tunnelConn struct {
	*Conn
	journal *Journal
	passage *Passage // nil: of a request that is not observed
}

// Close records the moment of its first call.
func (c *tunnelConn) Close() error {
	if p := c.passage; p != nil {
		c.journal.mu.Lock()
		if p.tunnel == c && p.TunnelEnd == 0 {
			p.TunnelEnd = c.journal.now()
		}
		c.journal.mu.Unlock()
	}
	return c.Conn.Close()
}
