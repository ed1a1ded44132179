package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// clientBody reads a client's body. Each read has its time, and leave ends them all.
type clientBody struct {
	w       http.ResponseWriter
	body    io.ReadCloser
	timeout time.Duration // of a read, 0 for none
	duplex  bool          // the answer may begin before the body has ended

	mu       sync.Mutex
	deadline time.Time
	ended    bool // its end was read
	left     bool // nobody reads it any more
}

var errLeft = errors.New("the exchange has ended")

func (c *clientBody) begin(w http.ResponseWriter, body io.ReadCloser, timeout time.Duration) {
	c.w, c.body, c.timeout = w, body, max(timeout, 0)
}

func (c *clientBody) Read(p []byte) (int, error) {
	if !c.extend() {
		return 0, errLeft
	}
	n, err := c.body.Read(p)
	if err == io.EOF {
		c.end()
	}
	return n, err
}

// extend gives the next read its time, if there is to be one. The deadline is moved only when less
// than that is left, which is much cheaper.
func (c *clientBody) extend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return false
	}
	if c.timeout == 0 {
		return true
	}
	if now := time.Now(); c.deadline.Sub(now) < c.timeout {
		c.deadline = now.Add(c.timeout + c.timeout/4)
		_ = http.NewResponseController(c.w).SetReadDeadline(c.deadline)
	}
	return true
}

// end takes the deadline away: net/http goes on reading, to notice a client that leaves.
func (c *clientBody) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timeout > 0 && !c.left {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	}
}

// fullDuplex lets the answer begin before the body has ended. Writers that can't are those
// of HTTP/1.0 and of tests; they lose nothing else.
func (c *clientBody) fullDuplex() {
	if !c.duplex {
		c.duplex = http.NewResponseController(c.w).EnableFullDuplex() == nil
	}
}

// leave is called when the exchange has ended. A body that has not ended by then is read no more, and
// the connection closes behind the answer: "a server MUST read the entire request message body or
// close the connection after sending its response" (RFC 9112 section 9.3). net/http sees to that by
// itself, but not where the answer may begin before: it breaks a read that is under way, forgets its
// failure, and takes what follows for the next request; or it reads the rest behind the answer, and then
// reads twice at once, which panics. reading is held by who reads.
func (c *clientBody) leave(reading sync.Locker) {
	if !c.duplex || !c.stop() {
		return
	}
	reading.Lock()
	defer reading.Unlock()
	closeBehindAnswer(c.w)
	_ = c.body.Close()
}

// stop breaks reads off, and says whether one may have been under way.
func (c *clientBody) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.left = true
	return http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0)) == nil
}

// closeBehindAnswer has net/http's server close the connection when the answer is sent, though its head
// may have been sent before. Only a body that is too large can tell it so.
func closeBehindAnswer(w http.ResponseWriter) {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	tooLarge := http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0)
	_, _ = tooLarge.Read(make([]byte, 1))
}
