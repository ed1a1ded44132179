package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// Refusal is a request that the server has refused, since it is malformed, too large or not supported, or one whose header
// was not received as a whole.
type Refusal struct {
	// Status is that of the response. It is 0 if there is none: the client has left within the header, or has not sent the
	// header in time. A response that is written then is not sent.
	Status int
	// Err is the cause. If Status is 0 it is the error of a read: one for which errors.Is(err, os.ErrDeadlineExceeded) is
	// true if the time was over. Otherwise its text holds nothing of the request.
	Err error
	// Line is the first line of the request as far as it was read, up to 4 KiB. It holds any bytes, but no line feed.
	Line string
	// Request is what was understood of the request. Its method, target and protocol are "" if the request line is malformed
	// or was not received as a whole. Header has the fields in front of the mistake, without those that concern
	// the body, and Host is one of them. URL is empty, and Body has no content. The rest is that of any request of the
	// connection.
	Request *http.Request
}

// maxLine bounds Refusal.Line, as internal/http1 does.
const maxLine = 4 << 10

// refuseWithin bounds the time to write the response to a request that was refused.
const refuseWithin = 5 * time.Second

// refuse responds to a request that the handler does not see, and closes the connection for writing. The client may still
// be sending, so what it sends is read for a while.
func (c *conn) refuse(in *http1.Incoming, line string, err error) {
	r := &Refusal{Err: err, Line: line}
	var refused *http1.Refused
	switch {
	case errors.As(err, &refused):
		r.Status = refused.Status
	case c.server.OnRefused == nil, errors.Is(err, net.ErrClosed): // Close or Shutdown has closed it
		return
	}
	c.mu.Lock()
	c.writes.until = time.Now().Add(refuseWithin)
	_ = c.applyWriteDeadline()
	c.mu.Unlock()
	responded, ok := c.callOnRefused(in, r)
	if !ok || refused == nil {
		return
	}
	if !responded {
		_, err := fmt.Fprintf(c.rwc, "HTTP/1.1 %d %[2]s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%[1]d %[2]s: %[3]s",
			refused.Status, http.StatusText(refused.Status), refused.Reason)
		if err != nil {
			return
		}
	}
	c.linger()
}

// callOnRefused calls the hook. It reports whether that has sent a response, and whether it has returned without having taken
// the connection, and the client can be reached still.
func (c *conn) callOnRefused(in *http1.Incoming, r *Refusal) (responded, ok bool) {
	if c.server.OnRefused == nil {
		return false, true
	}
	x := c.refusedExchange(in)
	x.refusal, r.Request = r, &x.req
	if r.Status == 0 { // the connection is closed when the hook has returned: what it logs is there when the client sees that
		x.w.err = net.ErrClosed
	}
	c.mu.Lock()
	c.current = x
	c.mu.Unlock()
	if !c.handle(x) || c.leave(x) {
		return false, false
	}
	defer c.stopWatching()
	if !x.w.frozen {
		return false, true
	}
	return true, x.w.finish()
}

// refusedExchange returns an exchange with what was understood of a request.
func (c *conn) refusedExchange(in *http1.Incoming) *exchange {
	x := &exchange{c: c}
	x.ctx.c, x.ctx.parent, x.ctx.names = c, c.ctx, in.Names
	x.req = *blank.WithContext(&x.ctx)
	r := &x.req
	r.URL, r.ProtoMajor, r.ProtoMinor, r.Close = &x.url, 1, 1, true
	if r.Header = in.Fields; r.Header == nil {
		r.Header = http.Header{}
	} else {
		r.Method, r.RequestURI, r.Proto, r.ProtoMinor = in.Method, in.Target, in.Proto, in.Minor
		r.Host = r.Header.Get("Host")
		for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer", "Expect"} {
			delete(r.Header, name)
		}
	}
	r.RemoteAddr, r.TLS = c.remoteAddr, c.tls
	x.startBody(http1.Framing{})
	_ = x.startWriter() // there is no Expect
	return x
}
