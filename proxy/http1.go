package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/http1"
)

// http1Exchange runs over connections of a pool, on the handler's goroutine: what
// http.Transport does with two more for each connection, and three hand-overs for each
// request. What package http1 does not send goes through fallback.
type http1Exchange struct {
	o        *Options
	pool     *http1.Pool
	fallback exchanger
}

func (e *http1Exchange) exchange(f *forwarding) (exchangeResult, *culvert.Error) {
	if f.hedges() {
		return e.fallback.exchange(f) // on goroutines of its own
	}
	x := f.http1Attempt()
	c, out := x.c, x.Request
	c.body.Attach(out.Context(), out, e.o.RequestTrailer)
	if x.Separate = c.body.Expects(); x.Separate && e.pool.HeaderTimeout() == 0 {
		c.body.BoundHeader(0)
	}
	if e.o.StreamRequest && !c.body.Received() {
		x.Separate = true
	}
	err := x.Prepare()
	if err == http1.ErrOther {
		return e.fallback.exchange(f) // which begins anew
	}
	defer c.body.Finish()
	if err != nil {
		return exchangeResult{}, unsendable(f.out.In, err)
	}
	fullDuplex(f)
	x.setHeader()
	resp, err := e.pool.Do(&x.Call)
	if err != nil {
		result := exchangeResult{sent: c.body.Sent()}
		result.wireSent, result.wireReceived = x.Bytes()
		return result, x.failure(err)
	}
	defer x.Close() // also where a hook panics
	c.body.HeaderReceived()
	result := f.arrived(resp.StatusCode)
	if f.retryStatus(resp.StatusCode) && f.leaseInstead(&c.body) {
		clear(x.Header)
		result.dropped, result.sent = true, c.body.Sent()
		result.wireSent, result.wireReceived = x.Bytes()
		x.Release()
		return result, nil
	}
	if x.KeepNames {
		f.names.Received = fieldnames.Format{Names: x.Received, Status: x.Status}
	}
	result.received, err = f.relay(c, resp, x.Header != nil)
	result.sent = c.body.Sent()
	result.wireSent, result.wireReceived = x.Bytes()
	if err != nil {
		return result, refineOwn(out.Context(), errs.As(err), c)
	}
	x.Release()
	return result, nil
}

// fullDuplex lets the response begin before the request has ended.
func fullDuplex(f *forwarding) {
	if f.body.Exists() {
		f.body.Client().FullDuplex()
	}
}

// http1Attempt is one attempt of http1Exchange: its call over the pool, whose hooks it implements.
type http1Attempt struct {
	http1.Call
	f *forwarding
	c *call
}

// http1Attempt returns an attempt. That of the first one is part of f: an upload that has not ended still holds it.
func (f *forwarding) http1Attempt() *http1Attempt {
	x := &f.own
	if len(f.tried) > 0 {
		x = new(http1Attempt)
	}
	x.f = f
	x.c, x.Request = f.ownCall()
	x.Repeatable, x.BodyTimeout, x.Hooks = isSafe, f.p.o.BodyTimeout, x
	x.Names, x.KeepNames = f.outbound.FieldNames, f.p.o.KeepFieldNames
	return x
}

// isSafe reports whether a target may receive out twice even if no option of Retry permits it.
func isSafe(out *http.Request) bool { return repeatsOf(out) == repeatsSafe }

// setHeader has the response's header read into that of the client's response, where no hook looks at it before the
// client does and nothing is in it yet. Where the upload may send the client a 100, which takes what is there out of the
// way, it is a map of its own.
func (x *http1Attempt) setHeader() {
	if x.Separate || x.f.p.o.ModifyResponse != nil {
		return
	}
	w := x.f.client.Writer()
	if h := w.Header(); len(h) == 0 {
		x.Header = h
		if l, ok := w.(clientside.Lender); ok {
			x.Memory = l.Memory()
		}
	}
}

// Connected implements http1.Hooks.
func (x *http1Attempt) Connected() {
	if x.f.record != nil {
		x.f.record.Connected(time.Now())
	}
}

// Dialling implements http1.Hooks.
func (x *http1Attempt) Dialling() { x.f.dialled = true }

// Streaming implements http1.Hooks.
func (x *http1Attempt) Streaming() {
	x.f.held = true
	x.f.body.Client().Claim()
}

// Withheld implements http1.Hooks.
func (x *http1Attempt) Withheld() { x.c.body.Withheld() }

// BodyDone implements http1.Hooks.
func (x *http1Attempt) BodyDone() { x.c.body.Abandon() }

// FirstByte implements http1.Hooks.
func (x *http1Attempt) FirstByte() { x.c.body.FirstByte() }

// Interim implements http1.Hooks.
func (x *http1Attempt) Interim(status int, header http.Header) {
	x.c.body.InterimReceived()
	x.c.interim.relay(status, textproto.MIMEHeader(header))
}

// failure returns the typed error of a call that has no response.
func (x *http1Attempt) failure(err error) *culvert.Error {
	var failed *http1.Error
	if errors.As(err, &failed) {
		x.f.stale, err = failed.Stale, failed.Err
	}
	return classify(x.Request.Context(), err, x.c)
}

// refineOwn distinguishes the timeouts of a body from its other failures.
func refineOwn(ctx context.Context, e *culvert.Error, c *call) *culvert.Error {
	if e != nil && e.Kind == culvert.BodyBroken && isTimeout(e.Err) && ctx.Err() == nil && c.source.Failure() == nil {
		e.Kind, e.Err = culvert.Timeout, errBodyStalled
	}
	return refine(ctx, e, c)
}
