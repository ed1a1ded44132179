package proxy

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/replay"
)

// upload sends a request with a body on a goroutine of its own: the answer may come first. A
// nil one is that of a request without a body.
type upload struct {
	conn    *http1.Conn
	buf     []byte // of the head, and of the body's pieces
	head    []byte // the beginning of buf, or memory of its own
	body    io.Reader
	framing http1.Framing
	trailer http.Header
	timeout time.Duration // of the answer's head, from the end of the upload on
	call    *call

	proceed chan bool     // closed, or told whether to send the body; nil: it is sent at once
	asked   bool          // proceed was told
	ended   chan struct{} // closed when nothing more is sent
	err     error

	mu       sync.Mutex
	headCame bool      // of the final response
	until    time.Time // when that must have come; zero as long as the body is sent, and for no bound
	last     bool      // nothing is left to be read of the body: its last bytes are being written
}

// Times of http.Transport.
const (
	expectTimeout = time.Second            // how long a target may think about Expect
	uploadGrace   = 50 * time.Millisecond  // how long an upload may take to notice that it has ended
	lastWords     = 200 * time.Millisecond // how long an answer may take once nothing more can be written
)

func startUpload(x *ownExchange) *upload {
	u := &upload{conn: x.conn, buf: x.buf, head: x.head, body: x.out.Body, framing: x.framing, trailer: x.out.Trailer,
		timeout: x.e.pool.HeaderTimeout(), call: x.call, ended: make(chan struct{})}
	if header.HasToken(x.out.Header["Expect"], "100-continue") {
		u.proceed = make(chan bool, 1)
	}
	u.conn.SetReadTimeout(0)
	x.f.body.Client().Claim()
	go u.run()
	return u
}

func (u *upload) run() {
	defer bufpool.Put(u.buf)
	defer close(u.ended)
	u.err = u.send()
	u.call.body.Abandon()
	switch {
	case u.err == nil:
		u.awaitHead(u.timeout)
	case u.call.source.Failure() != nil:
		u.conn.Interrupt() // nobody can answer what will never be whole
	default:
		u.awaitHead(lastWords) // perhaps the target has answered and closed
	}
}

// awaitHead bounds the wait for the answer's head, if that has not come before: how long its body may
// take is not the upload's matter.
func (u *upload) awaitHead(timeout time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.headCame {
		return
	}
	if timeout > 0 {
		u.until = time.Now().Add(timeout)
	}
	u.conn.StartReadTimeout(timeout)
}

// runs reports whether the body is still sent.
func (u *upload) runs() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.until.IsZero()
}

func (u *upload) send() error {
	if u.proceed != nil {
		if _, err := u.conn.Write(u.head); err != nil {
			return err
		}
		if !u.wait() {
			return replay.ErrNotWanted
		}
		u.head = nil
	}
	if u.framing.Chunked {
		return u.sendChunks(u.buf)
	}
	if len(u.head) > 0 { // at once: the target need not wait for a request of which it has seen nothing
		if _, err := u.conn.Write(u.head); err != nil {
			return err
		}
	}
	return u.sendLength()
}

// wait waits until the target wants the body: it asks for it, or does not respond for a while. Of an exchange whose time is
// bounded most is left for what follows.
func (u *upload) wait() bool {
	u.call.body.Withheld()
	patience := expectTimeout
	if end, bounded := u.call.interim.in.Context().Deadline(); bounded {
		patience = min(patience, time.Until(end)/4)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case wanted := <-u.proceed:
		return wanted
	case <-timer.C:
		return true
	}
}

// answered is told of each head that comes.
func (u *upload) answered(status int) {
	if u == nil {
		return
	}
	if status >= 200 {
		u.mu.Lock()
		u.headCame = true
		u.mu.Unlock()
	}
	if u.proceed == nil || u.asked || status != http.StatusContinue && status < 200 {
		return
	}
	u.asked = true
	u.proceed <- status == http.StatusContinue
}

// sendLength sends the pieces of the body as they come.
func (u *upload) sendLength() error {
	for left := u.framing.Length; left > 0; {
		n, err := u.body.Read(u.buf[:min(int64(len(u.buf)), left)])
		if left -= int64(n); err != nil && err != io.EOF {
			return err
		}
		if left == 0 {
			u.startLast()
		}
		if _, err := u.conn.Write(u.buf[:n]); err != nil {
			return err
		}
		if err == io.EOF && left > 0 {
			return replay.ErrLength
		}
	}
	return readsNoMore(u.body)
}

// readsNoMore reads a body's end, which may say more than that there is one.
func readsNoMore(body io.Reader) error {
	var one [1]byte
	n, err := body.Read(one[:])
	if n > 0 {
		return replay.ErrLength
	}
	if err == io.EOF || err == nil {
		return nil
	}
	return err
}

// chunkHead is room for a chunk's length.
const chunkHead = 8

// sendChunks sends the head at once, since the body may be a conversation, and each piece as
// it comes.
func (u *upload) sendChunks(buf []byte) error {
	if len(u.head) > 0 {
		if _, err := u.conn.Write(u.head); err != nil {
			return err
		}
	}
	for {
		n, err := u.body.Read(buf[chunkHead : len(buf)-2])
		if n > 0 {
			size := strconv.AppendInt(nil, int64(n), 16)
			start := chunkHead - len(size) - 2
			copy(buf[start:], size)
			buf[chunkHead-2], buf[chunkHead-1] = '\r', '\n'
			buf[chunkHead+n], buf[chunkHead+n+1] = '\r', '\n'
			if _, err := u.conn.Write(buf[start : chunkHead+n+2]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return u.sendTrailers(buf)
		}
		if err != nil {
			return err
		}
	}
}

// sendTrailers leaves out what is no field, as net/http does: the body has been sent.
func (u *upload) sendTrailers(buf []byte) error {
	u.startLast()
	b := append(buf[:0], "0\r\n"...)
	for name, values := range u.trailer {
		for _, value := range values {
			if with, err := http1.AppendField(b, name, value); err == nil {
				b = with
			}
		}
	}
	_, err := u.conn.Write(append(b, "\r\n"...))
	return err
}

// startLast notes that the last bytes are about to be written.
func (u *upload) startLast() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = true
}

func (u *upload) isLast() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// finished reports whether all was sent. It waits a moment for an upload whose last bytes are
// under way, which may just not have noticed its end: but not for a client that still sends,
// since the end of the response would have to wait as well.
func (u *upload) finished() bool {
	if u == nil {
		return true
	}
	select {
	case <-u.ended:
		return u.err == nil
	default:
	}
	if !u.isLast() {
		return false
	}
	timer := time.NewTimer(uploadGrace)
	defer timer.Stop()
	select {
	case <-u.ended:
		return u.err == nil
	case <-timer.C:
		return false
	}
}

// failed returns why not all was sent, nil as long as nothing has failed.
func (u *upload) failed() error {
	if u == nil {
		return nil
	}
	select {
	case <-u.ended:
		if u.err == replay.ErrNotWanted {
			return nil
		}
		return u.err
	default:
		return nil
	}
}
