package wsupgrade

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/result"
)

// answer dials the target, sends the handshake and reads the head of the response, all within
// the handshake timeout, which does not run while the client's body is read: that is none of the
// target's time. On failure nothing stays open.
func (f *Forwarder) answer(w http.ResponseWriter, in, out *http.Request, protocol string) (_ *upstreamConn, resp *http.Response, err error) {
	request, err := requestHead(out, protocol, nil)
	if err != nil {
		return nil, nil, refusal(fault.BadRequest, err)
	}
	begun := time.Now()
	conn, err := f.dialWithin(in.Context(), out)
	if err != nil {
		return nil, nil, handshakeError(in.Context(), nil, err)
	}
	defer func() {
		if resp == nil { // also where a filter's body panics
			conn.Close()
		}
	}()
	result.Connected(result.From(in.Context()), time.Now())
	left := f.timeout - time.Since(begun)
	if hasBody(in) {
		reads := time.Now()
		body, err := f.readBody(w, in)
		result.AwaitedClient(result.From(in.Context()), time.Since(reads))
		if err != nil {
			return nil, nil, err
		}
		if request, err = requestHead(out, protocol, body); err != nil {
			return nil, nil, refusal(fault.BadRequest, err)
		}
	}
	if f.headTimeout > 0 {
		left = min(left, f.headTimeout)
	}
	resp, err = conn.exchangeWithin(in.Context(), left, request, out)
	if err != nil {
		return nil, nil, handshakeError(in.Context(), conn, err)
	}
	return conn, resp, nil
}

// dialWithin connects within the handshake timeout.
func (f *Forwarder) dialWithin(in context.Context, out *http.Request) (*upstreamConn, error) {
	ctx, cancel := context.WithTimeout(dialContext{in, out.Context()}, f.timeout)
	defer cancel()
	return f.connect(ctx, out.URL)
}

// dialContext ends with the client's request, and has the values of the outbound one: Dial may
// need them to know the target, as upstream.Group's does.
type dialContext struct {
	context.Context
	values context.Context
}

func (c dialContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// exchangeWithin is exchange that ends with the time, and with the client.
func (c *upstreamConn) exchangeWithin(in context.Context, d time.Duration, request []byte, out *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(in, d)
	defer cancel()
	stop := endWith(ctx, c)
	resp, err := c.exchange(request, out)
	if ended := stop(); ended && err == nil {
		err = context.Cause(ctx) // the deadline is set, or about to be
	}
	return resp, err
}

// exchange sends the request and returns the head of the final answer.
// Interim answers are skipped; they count against the head's limit.
func (c *upstreamConn) exchange(request []byte, out *http.Request) (*http.Response, error) {
	c.wrote = true
	if _, err := c.Conn.Write(request); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(c.reader, out)
		if err != nil {
			if c.limit.N <= 0 {
				err = errors.New("response head over the limit")
			}
			return nil, err
		}
		switch status := resp.StatusCode; {
		case status < 100 || status > 999:
			return nil, errors.New("invalid status " + resp.Status)
		case status == http.StatusSwitchingProtocols || status >= 200:
			c.limit.N = math.MaxInt64
			return resp, nil
		}
	}
}

// handshakeError gives err the kind that fits where the handshake stood; conn
// is nil while there was none. The client's leaving makes everything else fail
// too and must not be blamed on the target.
func handshakeError(in context.Context, conn *upstreamConn, err error) error {
	e := &fault.Error{Kind: fault.Head, Err: err, Wrote: conn != nil && conn.wrote}
	var netErr net.Error
	switch {
	case errors.Is(in.Err(), context.Canceled):
		e.Kind = fault.Ended(in)
	case conn == nil:
		e.Kind = fault.DialKind(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		e.Kind = fault.Timeout
	}
	return e
}

// past is a deadline that ends every pending read and write.
var past = time.Unix(1, 0)
