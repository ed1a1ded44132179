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

// answer dials the target, sends the handshake and reads the head of the
// answer, all within the handshake timeout. On failure nothing stays open.
func (f *Forwarder) answer(in context.Context, out *http.Request, protocol string) (*upstreamConn, *http.Response, error) {
	request, err := requestHead(out, protocol)
	if err != nil {
		return nil, nil, refusal(fault.BadRequest, err)
	}
	ctx, cancel := context.WithTimeout(dialContext{in, out.Context()}, f.timeout)
	defer cancel()
	conn, err := f.connect(ctx, out.URL)
	if err != nil {
		return nil, nil, handshakeError(in, nil, err)
	}
	result.Connected(result.From(in), time.Now())
	if f.headTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, f.headTimeout)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(past) })
	resp, err := conn.exchange(request, out)
	if !stop() && err == nil {
		err = context.Cause(ctx) // the deadline is set, or about to be
	}
	if err != nil {
		conn.Close()
		return nil, nil, handshakeError(in, conn, err)
	}
	return conn, resp, nil
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

// exchange sends the request's head and returns the head of the final answer.
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
