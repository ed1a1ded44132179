package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/relay"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/upstream"
)

// exchanger runs one exchange with the leased target and writes the response to the client's
// ResponseWriter.
type exchanger interface {
	exchange(*forwarding) (exchangeResult, *culvert.Error)
}

// exchangeResult is what an exchange reports for the record and to the group.
type exchangeResult struct {
	status         int
	after          time.Duration // the time to the header of the response
	waited         time.Duration // the part of it that the target is to blame for
	sent, received int64
	// bytes of the connection, headers included; 0: not known
	wireSent, wireReceived int64

	dropped  bool // the response, for that of another target, which has been leased
	detached bool // a tunnel runs, and gives the target back at its end
}

// transportExchange runs over an http.RoundTripper.
type transportExchange struct {
	o         *Options
	transport http.RoundTripper
	bounds    headerBounds
}

func (e *transportExchange) exchange(f *forwarding) (exchangeResult, *culvert.Error) {
	c, out := f.tracedCall(e.bounds)
	defer c.body.Finish()
	var names fieldnames.Upgrade // of a transport that keeps them
	if e.o.KeepFieldNames {
		out = out.WithContext(fieldnames.WithUpgrade(out.Context(), &names))
	}
	defer c.interim.later.finish(false) // also where a function of the user's panics
	ctx, cancel := context.WithCancelCause(out.Context())
	defer cancel(nil)
	c.interim.later.cancel = cancel
	c.body.Attach(ctx, out, e.o.RequestTrailer)
	if out.Body == nil {
		c.trace.GotConn, c.trace.GotFirstResponseByte = c.gotConn, c.firstByte
		c.resends.watch(&c.trace, e.o.Retry.mayRepeat(repeatsOf(f.out.Out)), cancel)
	} else if t, ok := e.transport.(*upstream.Transport); ok && t.WriteBound() > 0 {
		c.body.BoundUpload(t.WriteBound(), cancel)
		c.trace.WroteRequest = func(httptrace.WroteRequestInfo) { c.body.Accepted() }
	}
	sending, leavable := c.body.Leavable(ctx)
	defer c.body.Leave()
	if leavable {
		c.trace.GotConn, c.trace.GotFirstResponseByte = c.gotConn, c.firstByte
	}
	out = out.WithContext(httptrace.WithClientTrace(sending, &c.trace))
	if err := forTransport(f.out.In, out); err != nil {
		return exchangeResult{}, err
	}
	fullDuplex(f)

	transport := e.transport
	if f.hedges() {
		transport = &hedged{f: f, c: c, ctx: ctx, next: transport}
	}
	resp, err := c.roundTrip(ctx, transport, out)
	var result exchangeResult
	if err == nil {
		c.body.HeaderReceived()
		result = f.arrived(resp.StatusCode) // the target does not wait for the client
		result.dropped = f.retryStatus(resp.StatusCode) && f.leaseInstead(&c.body)
	}
	c.interim.later.finish(err == nil && !result.dropped)
	f.stale = err != nil && c.counts.stale() && !streamReset(err)
	if err == nil && !result.dropped {
		err = cutShort(ctx, resp)
	}
	f.record.Connected(c.counts.connectedAt())
	if err != nil {
		failure := classify(ctx, err, c)
		failure.BytesSent = failure.BytesSent || dialFailed(err) && c.counts.unclear()
		return exchangeResult{sent: c.body.Sent()}, failure
	}
	result.sent = c.body.Sent()
	if result.dropped {
		resp.Body.Close()
		return result, nil
	}
	if e.o.BodyTimeout > 0 {
		resp.Body = newStallWatch(resp.Body, e.o.BodyTimeout, cancel)
	}
	if err := awaitEmpty(resp, out.Method); err != nil {
		resp.Body.Close()
		return exchangeResult{sent: c.body.Sent()}, classify(ctx, err, c)
	}
	if resp.ContentLength > 0 && !withoutContent(resp, out.Method) {
		resp.Body = &exactBody{ReadCloser: resp.Body, left: resp.ContentLength}
	}
	if f.names.Received = names.Received; e.o.KeepFieldNames && resp.ProtoMajor >= 2 && names.Received.Names == nil {
		f.names.Received.Names = fieldnames.Lower(resp.Header)
	}
	result.received, err = f.relay(c, resp, false)
	result.sent = c.body.Sent()
	return result, refine(ctx, errs.As(err), c)
}

// roundTrip runs one exchange. ctx is the attempt's. A transport that gives neither a response nor an error is at fault, not its target; a
// response without a Body has an empty one, as for http.Client. One that checkFinal refuses is an error.
func (c *call) roundTrip(ctx context.Context, t http.RoundTripper, out *http.Request) (*http.Response, error) {
	resp, err := t.RoundTrip(out)
	for n := 0; n < mostUnsent && err != nil && unsent(err) && out.Context().Err() == nil; n++ {
		resp, err = t.RoundTrip(out)
	}
	c.body.Returned()
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, &culvert.Error{Kind: culvert.Internal, BytesSent: true, Err: fmt.Errorf("proxy: Options.Transport (%T) returned (nil, nil)", t)}
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	resp.Body = c.bodyBeside(ctx, resp)
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

// relay writes a target's response to the client. inPlace says that resp.Header is the header of the
// client's response already. It returns the number of bytes of the body that were relayed.
func (f *forwarding) relay(c *call, resp *http.Response, inPlace bool) (int64, error) {
	f.record.HeaderReceived(resp.StatusCode)
	f.body.Client().StartResponse()
	removeCookie := f.addCookie()
	po := &f.p.o
	o := relay.Options{InPlace: inPlace, Flush: po.FlushInterval, WriteTimeout: po.WriteTimeout, Trailer: po.ResponseTrailer, Buffer: bufferFor(po.ResponseBuffer, resp), Drain: true, Format: &f.names.Received}
	if po.ModifyResponse != nil {
		o.Modify = f.modify
	}
	if f.body.Client().Unwatched() {
		o.Begun = c.body.ResponseBegun
	}
	n, err := relay.Response(&f.client, f.out.In, resp, o)
	if failure := errs.As(err); failure != nil && !failure.HeaderSent {
		removeCookie()
	}
	return n, err
}

// call is the state of one attempt beside its request, in one allocation.
type call struct {
	interim interimRelay
	source  *replay.Body
	body    replay.Attempt
	trace   httptrace.ClientTrace // for a transport
	resends resends               // of a transport
	counts  *resends              // those of the round trip whose result counts: resends, unless a second one has (Retry.Hedge)
}

// start prepares the call of an attempt.
func (c *call) start(f *forwarding, in *http.Request) {
	c.interim = interimRelay{client: &f.client, in: in, body: f.body.Client(), timeout: f.p.o.WriteTimeout, began: f.start, slow: &f.interims, drop: &f.outbound.DropInterim}
	c.source, c.counts = &f.body, &c.resends
	c.body.Start(&f.body)
}

// firstByte is called when the target begins its response.
func (c *call) firstByte() {
	c.resends.gotByte()
	c.body.FirstByte()
}

// gotInterim receives an interim response from a transport.
func (c *call) gotInterim(status int, fields textproto.MIMEHeader) error {
	c.resends.gotInterim()
	if err := checkInterim(status, fields); err != nil {
		return err
	}
	c.body.InterimReceived()
	return c.interim.queue(status, fields)
}

// gotConn may be called on any goroutine, and again where the transport retries.
func (c *call) gotConn(info httptrace.GotConnInfo) {
	if c.resends.gotConn(info) {
		c.body.Connected()
	}
}

// ownCall returns the call of an attempt and its request. Those of the first attempt are part of f.
func (f *forwarding) ownCall() (*call, *http.Request) {
	if len(f.tried) == 0 {
		return &f.first, f.out.Out
	}
	c := new(call)
	f.interims.clear()
	c.start(f, f.out.In)
	f.call = c
	again := *f.out.Out
	return c, &again
}

// tracedCall is ownCall for a transport, which may hold the request when the attempt has ended.
func (f *forwarding) tracedCall(bounds headerBounds) (*call, *http.Request) {
	f.held = true
	c, out := f.ownCall()
	c.trace.Got1xxResponse = c.gotInterim
	_, c.interim.room = bounds.HeaderBounds()
	if c.body.Expects() {
		timeout, _ := bounds.HeaderBounds()
		c.body.BoundHeader(timeout)
		c.trace.Wait100Continue = c.body.Withheld
	}
	if f.p.o.Retry.Errors || f.record != nil {
		c.trace.GotConn = c.gotConn
	}
	if f.p.o.Retry.Errors || c.body.Expects() {
		c.trace.GotFirstResponseByte = c.firstByte
	}
	return c, out
}
