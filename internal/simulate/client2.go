package simulate

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// runHTTP2 sends the requests over one connection, several at the same time.
func (c *client) runHTTP2() {
	conn := c.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(!c.plan.TLS)
	protocols.SetHTTP2(c.plan.TLS)
	transport := &http.Transport{DisableCompression: true, Protocols: &protocols}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	if over, ok := conn.(secured); ok {
		transport.DialTLSContext = func(context.Context, string, string) (net.Conn, error) { return over.Conn, nil }
	}
	cc, err := transport.NewClientConn(context.Background(), scheme(c.plan), "gateway.test:80")
	if err != nil {
		return // its link has a fault
	}
	defer cc.Close()
	var wg sync.WaitGroup
	for i := range c.plan.Requests {
		e := &c.plan.Requests[i]
		c.world.sleep(e.Wait / 4)
		wg.Go(func() { c.stream(cc, e) })
	}
	wg.Wait()
}

// stream runs one exchange.
func (c *client) stream(cc *http.ClientConn, e *ExchangePlan) {
	o := c.world.journal.outcome(e.Token)
	ctx, cancel := context.WithTimeout(context.Background(), c.patience(e))
	defer cancel()
	req, body := c.request2(ctx, e, o)
	c.note(e, "%s %s, body of %d bytes", e.Method, e.target(), e.Body.Length)
	defer func() {
		if body != nil {
			body.mu.Lock()
			o.SentWhole = body.whole
			body.mu.Unlock()
		}
		o.Ended = time.Now()
		c.note(e, "saw %d of attempt %d, %d bytes, whole %v, %v", o.Status, o.Attempt, o.Got, o.Whole, o.Err)
	}()
	resp, err := cc.RoundTrip(req)
	if err != nil {
		c.fail2(ctx, o, err)
		return
	}
	defer resp.Body.Close()
	o.noteHeader(resp)
	switch {
	case c.readBody(resp, e, o):
		o.Trailer = resp.Trailer
	case o.Status == http.StatusNotModified && errors.Is(o.Err, io.ErrUnexpectedEOF):
		// net/http expects a body of the Content-Length of a 304, which has none.
		o.Err, o.Whole = nil, true
	default:
		c.fail2(ctx, o, o.Err)
	}
}

// fail2 is fail for HTTP/2.
func (c *client) fail2(ctx context.Context, o *Outcome, err error) {
	o.Err = err
	if o.LeftAlone = ctx.Err() != nil; o.LeftAlone {
		c.world.journal.faults.Add("client left", 1)
	}
}

// request2 returns the request of a plan and its body, nil if there is none.
func (c *client) request2(ctx context.Context, e *ExchangePlan, o *Outcome) (*http.Request, *pacedBody) {
	var body io.Reader
	var paced *pacedBody
	if e.hasBody() {
		paced = &pacedBody{world: c.world, plan: e, ctx: ctx, wire: e.requestWire()}
		body = paced
	} else {
		o.SentWhole = true
	}
	req, err := http.NewRequestWithContext(ctx, e.Method, scheme(c.plan)+"://gateway.test/", body)
	if err != nil {
		panic(err)
	}
	req.URL.Opaque = "//gateway.test" + e.target() // sent unchanged
	for _, f := range e.Header {
		req.Header[http.CanonicalHeaderKey(f[0])] = append(req.Header[http.CanonicalHeaderKey(f[0])], f[1])
	}
	for _, f := range e.requestFields() {
		req.Header[http.CanonicalHeaderKey(f[0])] = []string{f[1]}
	}
	if e.Key {
		req.Header.Set("Idempotency-Key", "k")
	}
	if body != nil {
		req.ContentLength = paced.wire.Size()
		if e.Body.Chunked || e.Body.Length == 0 {
			req.ContentLength = -1
		}
		for _, f := range e.Trailer {
			if req.Trailer == nil {
				req.Trailer = http.Header{}
			}
			req.Trailer.Add(f[0], f[1])
		}
	}
	return req, paced
}

// pacedBody is a request's body, with the pieces and pauses of its plan.
type pacedBody struct {
	world *world
	plan  *ExchangePlan
	wire  body
	ctx   context.Context
	at    int64
	mu    sync.Mutex
	whole bool
}

// Read returns the next piece after its pause.
func (b *pacedBody) Read(p []byte) (int, error) {
	plan := &b.plan.Body
	if b.at >= b.wire.Size() {
		b.mu.Lock()
		b.whole = true
		b.mu.Unlock()
		return 0, io.EOF
	}
	if plan.Cut && b.at >= plan.CutAt {
		if plan.How == FaultSilence {
			<-b.ctx.Done()
		}
		b.world.journal.faults.Add("body cut by a reset stream", 1)
		return 0, errors.New("cut, as planned")
	}
	if plan.Pause > 0 && b.at > 0 {
		_ = sleep(b.ctx, plan.Pause)
	}
	n := min(int64(len(p)), b.wire.Size()-b.at)
	if plan.Piece > 0 {
		n = min(n, int64(plan.Piece))
	}
	if plan.Cut {
		n = min(n, max(1, plan.CutAt-b.at))
	}
	copy(p, b.wire.Bytes(b.at, b.at+n))
	b.at += n
	return int(n), nil
}

// Close does nothing.
func (b *pacedBody) Close() error { return nil }

// scheme returns the URL scheme of a client's requests.
func scheme(p *ClientPlan) string {
	if p.TLS {
		return "https"
	}
	return "http"
}
