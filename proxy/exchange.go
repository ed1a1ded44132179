package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/relay"
)

// exchanger runs one exchange with the leased target and writes the answer into
// the client's ResponseWriter. An *http.Response is an implementation's own
// matter.
type exchanger interface {
	exchange(*forwarding) (answered, *fault.Error)
}

// answered is what is recorded of a target's answer.
type answered struct {
	status         int
	after          time.Duration
	sent, received int64
	dropped        bool // for that of another target, which has been leased
	detached       bool // a tunnel, which gives the target back itself
}

// transportExchange runs over an http.RoundTripper.
type transportExchange struct{ o *Options }

func (e *transportExchange) exchange(f *forwarding) (answered, *fault.Error) {
	in := f.out.In
	c, out := f.call()
	defer c.body.end()
	ctx := out.Context()
	var cancel context.CancelCauseFunc
	if e.o.BodyTimeout > 0 {
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		out = out.WithContext(ctx)
	}
	c.body.attach(out, e.o.RequestTrailer)
	if in.ProtoMajor == 1 && in.ContentLength != 0 {
		// The answer may begin before the request has ended. Writers that can't
		// are those of HTTP/1.0 and of tests; they lose nothing else.
		_ = http.NewResponseController(f.w).EnableFullDuplex()
	}

	resp, err := e.o.Transport.RoundTrip(out)
	c.interim.finish()
	if err != nil {
		return answered{sent: c.body.sent()}, classify(ctx, err, &c.body)
	}
	answer := answered{status: resp.StatusCode, after: time.Since(f.started), sent: c.body.sent()}
	if resp.StatusCode < 200 || resp.StatusCode > 999 {
		resp.Body.Close()
		return answered{}, &fault.Error{Kind: fault.Head, Wrote: true, Err: fmt.Errorf("status %03d", resp.StatusCode)}
	}
	if f.drop(resp.StatusCode) {
		resp.Body.Close()
		answer.dropped = true
		return answer, nil
	}
	answer.received, err = e.relay(f, resp, cancel)
	answer.sent = c.body.sent()
	return answer, refine(ctx, fault.As(err))
}

// relay writes the answer to the client.
func (e *transportExchange) relay(f *forwarding, resp *http.Response, cancel context.CancelCauseFunc) (int64, error) {
	if cookie := f.lease.Cookie(f.out.In); cookie != nil {
		f.w.Header().Add("Set-Cookie", cookie.String())
	}
	if e.o.BodyTimeout > 0 {
		resp.Body = newStallWatch(resp.Body, e.o.BodyTimeout, cancel)
	}
	o := relay.Options{Flush: e.o.FlushInterval, WriteTimeout: e.o.WriteTimeout, Trailer: e.o.ResponseTrailer, Buffer: bufferFor(e.o.ResponseBuffer, resp)}
	if e.o.RewriteAnswer != nil {
		o.Head = func() http.Handler {
			e.o.RewriteAnswer(&Answer{In: f.out.In, Out: f.out.Out, Status: resp.StatusCode, Header: resp.Header})
			return nil
		}
	}
	return relay.Response(f.w, f.out.In, resp, o)
}

// call is what one try keeps beside the request, in one piece of memory.
type call struct {
	trace   httptrace.ClientTrace
	interim interimRelay
	body    requestBody
}

// begin prepares the call of a try.
func (c *call) begin(f *forwarding, in *http.Request) {
	c.interim.w, c.interim.in = f.w, in
	c.trace.Got1xxResponse = c.interim.relay
	c.body.begin(&f.body, &c.trace)
}

// call returns the call of the try and its request. The first try's are made with
// the outbound request; a transport may still hold them when there is another try.
func (f *forwarding) call() (*call, *http.Request) {
	if len(f.tried) == 0 {
		return &f.first, f.out.Out
	}
	c := new(call)
	c.begin(f, f.out.In)
	return c, f.out.Out.WithContext(httptrace.WithClientTrace(f.out.In.Context(), &c.trace))
}
