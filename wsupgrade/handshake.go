package wsupgrade

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/record"
)

// requestUpgrade dials the target, sends the handshake and reads the header of the response, all
// within the handshake timeout. The timeout does not run while the client's body is read: that time
// is not the target's. On failure nothing is left open.
func (f *Forwarder) requestUpgrade(w http.ResponseWriter, in, out *http.Request, protocol string) (_ *upstreamConn, resp *http.Response, err error) {
	request, err := renderRequest(out, protocol, nil)
	if err != nil {
		return nil, nil, refusal(culvert.BadRequest, err)
	}
	begun := time.Now()
	conn, err := f.dialWithin(in, out)
	if err != nil {
		return nil, nil, handshakeError(in.Context(), nil, err)
	}
	defer func() {
		if resp == nil { // also where a filter's body panics
			conn.Close()
		}
	}()
	record.From(in.Context()).Connected(time.Now())
	left := f.handshakeTimeout - time.Since(begun)
	if hasBody(in) {
		reads := time.Now()
		body, err := f.readBody(w, in)
		record.From(in.Context()).AwaitedClient(time.Since(reads))
		if err != nil {
			return nil, nil, err
		}
		if request, err = renderRequest(out, protocol, body); err != nil {
			return nil, nil, refusal(culvert.BadRequest, err)
		}
	}
	if f.headerTimeout > 0 {
		left = min(left, f.headerTimeout)
	}
	resp, err = conn.exchangeWithin(in.Context(), left, request, out)
	if err != nil {
		return nil, nil, handshakeError(in.Context(), conn, err)
	}
	return conn, resp, nil
}

// dialWithin connects to the target of out within the handshake timeout.
func (f *Forwarder) dialWithin(in, out *http.Request) (*upstreamConn, error) {
	ctx, cancel := context.WithTimeout(dialContext{in.Context(), out.Context()}, f.handshakeTimeout)
	defer cancel()
	return f.connect(client.WithEnds(ctx, client.EndsOf(in)), out.URL)
}

// dialContext ends with the client's request, and has the values of the outbound one: Dial may need
// them to find the target, as upstream.Group's does.
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

// exchangeWithin is exchange within d, which also ends when in does.
func (c *upstreamConn) exchangeWithin(in context.Context, d time.Duration, request []byte, out *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(in, d)
	defer cancel()
	stop := interruptWhenDone(ctx, c)
	resp, err := c.exchange(request, out)
	if interrupted := stop(); interrupted && err == nil {
		err = context.Cause(ctx) // the deadline is set, or about to be
	}
	return resp, err
}

// exchange sends the request and returns the final response, of which only the header is read.
// Interim responses are skipped; they count against the header's limit.
func (c *upstreamConn) exchange(request []byte, out *http.Request) (*http.Response, error) {
	c.wrote = true
	if _, err := c.Conn.Write(request); err != nil {
		return nil, err
	}
	names := fieldnames.UpgradeOf(out.Context())
	for {
		if names != nil {
			names.Received = peekFormat(c.reader)
		}
		resp, err := http.ReadResponse(c.reader, out)
		if err != nil {
			if c.limit.N <= 0 {
				err = errors.New("response header over the limit")
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

// handshakeError gives err the kind that fits the step at which the handshake failed; conn is nil
// before it was dialled. When the client leaves, everything else fails too, which must not be
// blamed on the target.
func handshakeError(in context.Context, conn *upstreamConn, err error) error {
	e := &culvert.Error{Kind: culvert.HeaderInvalid, Err: err, BytesSent: conn != nil && conn.wrote}
	var netErr net.Error
	switch {
	case errors.Is(in.Err(), context.Canceled):
		e.Kind = errs.KindOfContext(in)
	case conn == nil:
		e.Kind = errs.KindOfDial(err)
		if own := errs.As(err); own != nil {
			e.Kind, e.RetryAfter = own.Kind, own.RetryAfter
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		e.Kind = culvert.Timeout
	}
	return e
}
