package backend

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// conn is a connection to a backend.
type conn struct {
	t        *Transport
	addr     string
	nc       net.Conn
	br       *bufio.Reader
	bw       *bufio.Writer
	made     time.Time
	since    time.Time // when it became idle
	requests int
	watched  chan error  // what has ended the wait for a byte of an idle connection
	woken    atomic.Bool // by the one that takes it
	wrote    atomic.Bool
	body     atomic.Bool  // the response's header has been received: the bound is of each read, and not of the header as a whole
	bytes    atomic.Int64 // received in this exchange
}

func newConn(nc net.Conn, t *Transport, addr string) *conn {
	c := &conn{t: t, addr: addr, nc: nc, made: time.Now(), watched: make(chan error, 1)}
	c.br, c.bw = bufio.NewReaderSize(c, 16<<10), bufio.NewWriterSize(c, 16<<10)
	return c
}

// begin is called before a request.
func (c *conn) begin() {
	c.requests++
	c.wrote.Store(false)
	c.body.Store(false)
	c.bytes.Store(0)
}

// sent is called when the request has been sent, or has failed: the time of the response begins. Until then the backend waits
// for the client.
func (c *conn) sent() {
	c.wrote.Store(true)
	c.bound()
}

func (c *conn) bound() {
	if c.wrote.Load() && c.t.o.ReadTimeout > 0 {
		_ = c.nc.SetReadDeadline(time.Now().Add(c.t.o.ReadTimeout))
	}
}

// received reports whether bytes of a response have been received.
func (c *conn) received() bool { return c.bytes.Load() > 0 }

// Read implements io.Reader, with the timeout. Bytes of a header do not renew it, so that a backend that sends something else for
// ever, as errors of FastCGI, ends as well.
func (c *conn) Read(p []byte) (int, error) {
	if c.body.Load() {
		c.bound()
	}
	n, err := c.nc.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// Write implements io.Writer, with the timeout.
func (c *conn) Write(p []byte) (int, error) {
	if d := c.t.o.WriteTimeout; d > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(d))
	}
	return c.nc.Write(p)
}

// watch waits for the end of an idle connection, or for bytes of the backend, which belong to no response.
func (c *conn) watch() {
	_, err := c.nc.Read(make([]byte, 1))
	if err == nil {
		err = errUnsolicited
	}
	c.watched <- err
	if !c.woken.Load() {
		c.t.remove(c)
	}
}

var errUnsolicited = errors.New("bytes on an idle connection")

// wake ends watch, and reports whether the connection is good for another request.
func (c *conn) wake() bool {
	c.woken.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	good := errors.Is(<-c.watched, os.ErrDeadlineExceeded)
	_ = c.nc.SetReadDeadline(time.Time{})
	return good
}
