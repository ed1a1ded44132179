package http1

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"
)

// receive reads the header of the final response, and the interim responses before it.
func (c *Call) receive() error {
	room := c.pool.o.MaxHeader
	c.began, c.headerEnds = false, time.Time{}
	for {
		if err := c.awaitByte(); err != nil {
			return err
		}
		c.received.memory, c.received.named = c.Memory, c.KeepNames
		if err := c.received.read(c.conn.R, c.emptyHeader(), &room, c); err != nil {
			return err
		}
		c.upload.headerReceived(c.received.status)
		if s := c.received.status; s < 100 || s > 199 || s == http.StatusSwitchingProtocols {
			break
		}
		if err := c.passInterim(); err != nil {
			return err
		}
	}
	if c.received.status < 200 || c.received.status > 999 {
		return fmt.Errorf("status %03d", c.received.status)
	}
	err := c.makeResponse()
	c.Received, c.Status = c.received.names, c.received.statusText
	return err
}

// emptyHeader returns the map for the next header.
func (c *Call) emptyHeader() http.Header {
	if c.Header != nil {
		return c.Header
	}
	return make(http.Header, 8)
}

// passInterim hands the interim response that was received to the hook. The time that the hook takes is not the target's.
func (c *Call) passInterim() error {
	if _, err := c.received.frame(c.Request.Method); err != nil {
		return err
	}
	fields := c.received.fields
	if c.Header != nil {
		fields = maps.Clone(fields)
		clear(c.Header)
		c.Memory = nil // it holds the values
	}
	c.watch() // more may follow, each of them at once
	begun := time.Now()
	c.Hooks.Interim(c.received.status, fields)
	c.excuse(begun)
	return nil
}

// excuse leaves the time since begun, which the hook has taken, out of the time for the response's header.
func (c *Call) excuse(begun time.Time) {
	switch {
	case c.upload != nil:
		c.upload.excuse(begun)
		c.headerEnds = time.Time{} // the upload knows: the final header may be sent behind the whole body
	case !c.headerEnds.IsZero():
		c.headerEnds = c.headerEnds.Add(time.Since(begun))
	}
}

// awaitByte waits for the next byte of the response.
func (c *Call) awaitByte() error {
	short := c.patient() && !c.late
	if short {
		c.conn.SetReadTimeout(patience)
	} else {
		if c.late {
			c.watch()
		}
		c.boundRead(false)
	}
	_, err := c.conn.R.Peek(1)
	if err != nil && short && timedOut(err) {
		c.watch()
		c.boundRead(false)
		_, err = c.conn.R.Peek(1)
	}
	if err == nil && !c.began {
		c.began = true
		c.Hooks.FirstByte()
	}
	return err
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// AwaitRest implements Waiter. It prepares for a wait that may be long: a header section was not received as a whole.
func (c *Call) AwaitRest() {
	c.watch()
	c.boundRead(true)
}

// boundRead gives the next read of the response's header what remains of its time. While a body is still sent there is
// no bound, but for the rest of a header section that has begun.
func (c *Call) boundRead(begun bool) {
	u := c.upload
	if u == nil {
		c.conn.SetReadTimeout(c.timeForHeader())
		return
	}
	u.mu.Lock() // or the end of the upload would not be noticed
	defer u.mu.Unlock()
	switch {
	case !u.until.IsZero():
		if c.headerEnds.IsZero() || u.until.Before(c.headerEnds) {
			c.headerEnds = u.until
		}
		c.conn.SetReadTimeout(max(time.Until(c.headerEnds), time.Nanosecond))
	case begun:
		c.conn.SetReadTimeout(c.timeForHeader())
	default:
		c.conn.SetReadTimeout(0)
	}
}

// timeForHeader returns what remains of the time for the response's header, which is one for all of its
// pieces and for interim responses before it; 0 means no bound.
func (c *Call) timeForHeader() time.Duration {
	timeout := c.pool.o.HeaderTimeout
	switch {
	case timeout == 0:
		return 0
	case c.headerEnds.IsZero():
		c.headerEnds = time.Now().Add(timeout)
		return timeout
	}
	return max(time.Until(c.headerEnds), time.Nanosecond)
}

// makeResponse makes the response of the header that was received.
func (c *Call) makeResponse() (err error) {
	h := &c.received
	if c.ends, err = h.frame(c.Request.Method); err != nil {
		return err
	}
	var announced http.Header
	var trailer func(http.Header)
	if c.ends.chunked {
		trailer = c.addTrailer
		if announced, err = h.announced(); err != nil {
			return err
		}
	}
	length := c.ends.length
	if h.status == http.StatusNoContent || h.status == http.StatusNotModified {
		length = 0
	}
	c.body.start(c.conn, c.ends, trailer)
	c.resp = http.Response{StatusCode: h.status, ProtoMajor: 1, ProtoMinor: h.minor, Header: h.fields, Body: &c.body,
		ContentLength: length, Trailer: announced, Request: c.Request}
	return nil
}

// addTrailer adds what was received behind the body.
func (c *Call) addTrailer(fields http.Header) {
	if c.resp.Trailer == nil {
		c.resp.Trailer = fields
		return
	}
	maps.Copy(c.resp.Trailer, fields)
}

// startBody bounds the reads of a body that was not received with its header. It fails if the context has ended, which
// perhaps nothing has watched so far: the body would be cut.
func (c *Call) startBody() error {
	if c.body.buffered() {
		return nil
	}
	if err := c.Request.Context().Err(); err != nil {
		return err
	}
	c.watch()
	c.conn.SetReadTimeout(c.BodyTimeout)
	return nil
}
