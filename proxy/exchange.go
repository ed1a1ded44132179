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

// exchanger runs one exchange with a chosen target and writes the answer into
// w. An *http.Response is an implementation's own matter.
type exchanger interface {
	exchange(w http.ResponseWriter, in, out *http.Request) (answerHead, *fault.Error)
}

// answerHead is what is recorded of a target's head.
type answerHead struct {
	status int
	after  time.Duration
}

// transportExchange runs over an http.RoundTripper.
type transportExchange struct {
	transport     http.RoundTripper
	headerTimeout time.Duration // 0: none
}

func (e *transportExchange) exchange(w http.ResponseWriter, in, out *http.Request) (answerHead, *fault.Error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(in.Context())
	defer cancel(nil)
	c := newCall(w, in)
	c.wait.start(e.headerTimeout, cancel)
	defer c.body.expect.end()
	out = out.WithContext(httptrace.WithClientTrace(ctx, &c.trace))
	c.body.attach(out)
	if in.ProtoMajor == 1 && in.ContentLength != 0 {
		// The answer may begin before the request has ended. Writers that can't
		// are those of HTTP/1.0 and of tests; they lose nothing else.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}

	resp, err := e.transport.RoundTrip(out)
	c.wait.stop()
	c.interim.finish()
	if err != nil {
		return answerHead{}, classify(ctx, err, &c.body, &c.dial)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 999 {
		resp.Body.Close()
		return answerHead{}, &fault.Error{Kind: fault.Head, Wrote: true, Err: fmt.Errorf("status %03d", resp.StatusCode)}
	}
	answer := answerHead{status: resp.StatusCode, after: time.Since(start)}
	return answer, fault.As(relay.Response(w, in, resp))
}

// call is what one exchange keeps beside the request, in one piece of memory.
type call struct {
	trace   httptrace.ClientTrace
	interim interimRelay
	dial    dialWatch
	wait    headerTimer
	body    requestBody
}

func newCall(w http.ResponseWriter, in *http.Request) *call {
	c := &call{interim: interimRelay{w: w, in: in}}
	c.trace.GetConn = c.dial.ask
	c.trace.GotConn = c.dial.have
	c.trace.Got1xxResponse = c.interim.relay
	c.body.wrap(in, &c.wait)
	c.body.expect.watch(&c.trace)
	return c
}
