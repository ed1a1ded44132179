package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/relay"
	"github.com/culvert-go/culvert/upstream"
)

// exchanger runs one exchange with the leased target and writes the answer into
// the client's ResponseWriter. An *http.Response is an implementation's own
// matter.
type exchanger interface {
	exchange(*forwarding) (answered, *culvert.Error)
}

// answered is what is recorded of a target's answer.
type answered struct {
	status         int
	after          time.Duration // the time to its header
	waited         time.Duration // what of that the target is to blame for
	sent, received int64
	dropped        bool // for that of another target, which has been leased
	detached       bool // a tunnel, which gives the target back itself
}

// transportExchange runs over an http.RoundTripper.
type transportExchange struct{ o *Options }

func (e *transportExchange) exchange(f *forwarding) (answered, *culvert.Error) {
	c, out := f.tracedCall()
	defer c.body.end()
	defer c.interim.later.finish(false) // also where a function of the user's panics
	ctx, cancel := context.WithCancelCause(out.Context())
	defer cancel(nil)
	c.interim.later.cancel = cancel
	c.body.attach(ctx, out, e.o.RequestTrailer)
	if out.Body == nil {
		c.trace.GotConn, c.trace.GotFirstResponseByte = c.gotConn, c.firstByte
		c.resends.watch(&c.trace, e.o.Retry.mayRepeat(repeatsOf(f.out.Out)), cancel)
	} else if t, ok := e.o.Transport.(*upstream.Transport); ok {
		c.body.watch = newUploadWatch(t.WriteBound(), &c.trace, cancel)
		defer c.body.watch.settle()
	}
	sending := c.body.leavableContext(ctx)
	defer c.body.leave()
	if c.body.leaving != nil {
		c.trace.GotConn, c.trace.GotFirstResponseByte = c.gotConn, c.firstByte
	}
	out = out.WithContext(httptrace.WithClientTrace(sending, &c.trace))
	if err := forTransport(f.out.In, out); err != nil {
		return answered{}, err
	}
	fullDuplex(f)

	resp, err := c.roundTrip(e.o.Transport, out)
	c.body.watch.settle()
	var answer answered
	if err == nil {
		c.body.expect.headerReceived()
		answer = f.arrived(resp.StatusCode) // the target does not wait for the client
		answer.dropped = f.retryStatus(resp.StatusCode) && f.leaseInstead(&c.body)
	}
	c.interim.later.finish(err == nil && !answer.dropped)
	f.stale = err != nil && c.reused.Load() && !c.began.Load() && !streamReset(err)
	if err == nil && !answer.dropped {
		err = cutShort(ctx, resp)
	}
	if at := c.connected.Load(); at != nil {
		f.record.Connected(*at)
	}
	if err != nil {
		failure := classify(ctx, err, &c.body)
		failure.BytesSent = failure.BytesSent || dialFailed(err) && c.resends.unclear()
		return answered{sent: c.body.sent()}, failure
	}
	answer.sent = c.body.sent()
	if answer.dropped {
		resp.Body.Close()
		return answer, nil
	}
	if e.o.BodyTimeout > 0 {
		resp.Body = newStallWatch(resp.Body, e.o.BodyTimeout, cancel)
	}
	if err := awaitEmpty(resp, out.Method); err != nil {
		resp.Body.Close()
		return answered{sent: c.body.sent()}, classify(ctx, err, &c.body)
	}
	if resp.ContentLength > 0 && !withoutContent(resp, out.Method) {
		resp.Body = &exactBody{ReadCloser: resp.Body, left: resp.ContentLength}
	}
	answer.received, err = f.relay(c, resp, false)
	answer.sent = c.body.sent()
	return answer, refine(ctx, errs.As(err), &c.body)
}

// roundTrip runs one exchange. A transport that gives neither a response nor an error is at fault, not its target; a
// response without a Body has an empty one, as for http.Client. One that checkFinal refuses is an error.
func (c *call) roundTrip(t http.RoundTripper, out *http.Request) (*http.Response, error) {
	resp, err := t.RoundTrip(out)
	for n := 0; n < mostUnsent && err != nil && unsent(err) && out.Context().Err() == nil; n++ {
		resp, err = t.RoundTrip(out)
	}
	c.body.returned.Store(true)
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, &culvert.Error{Kind: culvert.Internal, BytesSent: true, Err: fmt.Errorf("proxy: Options.Transport (%T) returned (nil, nil)", t)}
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	resp.Body = c.body.besides(resp)
	if err := checkFinal(resp, out.Method); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// cutShort returns the error of a response whose body could not be relayed, since ctx has ended: it is not begun. The client
// may have taken until then to accept interim responses.
func cutShort(ctx context.Context, resp *http.Response) error {
	if resp.Body == http.NoBody || resp.ContentLength == 0 || ctx.Err() == nil {
		return nil
	}
	resp.Body.Close()
	return ctx.Err()
}

// relay writes a target's answer to the client. inPlace says that the fields are the client's
// already.
func (f *forwarding) relay(c *call, resp *http.Response, inPlace bool) (int64, error) {
	f.record.HeaderReceived(resp.StatusCode)
	f.body.client.StartResponse()
	if cookie := f.lease.Cookie(f.out.In); cookie != nil {
		f.w.Header().Add("Set-Cookie", cookie.String())
	}
	po := &f.p.o
	o := relay.Options{InPlace: inPlace, Flush: po.FlushInterval, WriteTimeout: po.WriteTimeout, Trailer: po.ResponseTrailer, Buffer: bufferFor(po.ResponseBuffer, resp)}
	if po.ModifyResponse != nil {
		o.Head = func() http.Handler {
			a := Response{In: f.out.In, Out: f.out.Out, Status: resp.StatusCode, Header: resp.Header}
			po.ModifyResponse(&a)
			header.RemoveMisspelt(a.Header)
			return a.instead
		}
	}
	if f.body.client.Unwatched() {
		o.Begun = c.body.responseBegun
	}
	return relay.Response(f.w, f.out.In, resp, o)
}

// call is what one try keeps beside the request, in one piece of memory.
type call struct {
	interim interimRelay
	body    requestBody
	trace   httptrace.ClientTrace // for a transport
	reused  atomic.Bool           // the transport's connection had been kept
	began   atomic.Bool           // the first byte of a response has been received over it

	connected atomic.Pointer[time.Time] // when the transport had a connection; nil: not yet
	resends   resends                   // of a transport, and a request without a body
}

// begin prepares the call of a try.
func (c *call) begin(f *forwarding, in *http.Request) {
	c.interim = interimRelay{w: f.w, in: in, client: &f.body.client, timeout: f.p.o.WriteTimeout, began: f.start, slow: &f.body.interims}
	f.body.interims.clear()
	c.body.begin(&f.body)
}

// firstByte is called when the target begins its response.
func (c *call) firstByte() {
	c.began.Store(true)
	c.body.responded.Store(true)
	c.resends.responded(true)
	c.body.expect.firstByte()
}

// gotInterim takes an interim response of a transport's.
func (c *call) gotInterim(status int, fields textproto.MIMEHeader) error {
	c.resends.responded(false)
	if err := checkInterim(status, fields); err != nil {
		return err
	}
	c.body.expect.settle(expectAsked)
	return c.interim.queue(status, fields)
}

// gotConn may be called on any goroutine, and again where the transport tries again.
func (c *call) gotConn(info httptrace.GotConnInfo) {
	if c.resends.cancel != nil && !c.resends.gotConn(info) {
		return
	}
	c.body.connected()
	c.reused.Store(info.Reused)
	c.began.Store(false)
	now := time.Now()
	c.connected.Store(&now)
}

// ownCall returns the call of a try and its request. Those of the first try are part of f.
func (f *forwarding) ownCall() (*call, *http.Request) {
	if len(f.tried) == 0 {
		return &f.first, f.out.Out
	}
	c := new(call)
	c.begin(f, f.out.In)
	f.call = c
	again := *f.out.Out
	return c, &again
}

// tracedCall is ownCall for a transport, which may hold the request when the try has ended.
func (f *forwarding) tracedCall() (*call, *http.Request) {
	f.held = true
	c, out := f.ownCall()
	c.trace.Got1xxResponse = c.gotInterim
	_, c.interim.room = f.p.bounds.HeaderBounds()
	if e := c.body.expect; e != nil {
		e.timeout, _ = f.p.bounds.HeaderBounds()
		e.endless = e.timeout == 0
		c.trace.Wait100Continue = e.withhold
	}
	if f.p.o.Retry.Errors || f.record != nil {
		c.trace.GotConn = c.gotConn
	}
	if f.p.o.Retry.Errors || c.body.expect != nil {
		c.trace.GotFirstResponseByte = c.firstByte
	}
	return c, out
}
