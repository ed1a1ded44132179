package http1

import (
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/panics"
)

// upload sends a request with a body on a goroutine of its own: the response may begin before. It outlives its Call
// where the body does not end. A nil upload is that of a request without a body.
type upload struct {
	conn    *Conn
	request *http.Request
	hooks   Hooks
	framing requestFraming
	buf     []byte        // of the header, and of the body's pieces
	header  []byte        // to be sent with the first piece: the beginning of buf, or memory of its own
	timeout time.Duration // of the response's header, from the end of the upload on

	proceed chan bool     // receives whether to send the body; nil: it is sent at once
	decided bool          // proceed was sent to
	ended   chan struct{} // closed when nothing more is sent
	err     error         // why not all was sent; set before ended is closed
	broken  bool          // err is that of the body

	mu       sync.Mutex // guards what follows
	received bool       // the header of the final response was
	until    time.Time  // when that must have been received; zero as long as the body is sent, and for no bound
	awaited  time.Time  // since when it is; zero where until is
	last     bool       // nothing remains to be read of the body: its last bytes are being written
}

// The times of http.Transport.
const (
	ExpectTimeout = time.Second            // how long a target may take to refuse a body (Expect: 100-continue)
	uploadGrace   = 50 * time.Millisecond  // how long an upload may take to notice that it has ended
	lastWords     = 200 * time.Millisecond // how long a response may take when nothing more can be written
)

// startUpload starts an upload, which takes c's memory over.
func (c *Call) startUpload() {
	u := &upload{conn: c.conn, request: c.Request, hooks: c.Hooks, framing: c.framing, buf: c.buf, header: c.sent,
		timeout: c.pool.o.HeaderTimeout, ended: make(chan struct{})}
	c.buf, c.sent = nil, nil
	if httpguts.HeaderValuesContainsToken(c.Request.Header["Expect"], "100-continue") {
		u.proceed = make(chan bool, 1)
	}
	c.upload = u
	c.conn.SetReadTimeout(0)
	go u.run()
}

func (u *upload) run() {
	defer bufpool.Put(u.buf)
	returned := false
	defer func() {
		if !returned {
			u.err, u.broken = errUploadEnded, true
		}
		close(u.ended)
		if u.broken { // there is no response to what will never be whole
			u.conn.Interrupt() // behind ended: who reads the response finds err
		}
	}()
	u.err = u.sendContained()
	returned = true
	u.hooks.BodyDone()
	switch {
	case u.err == nil:
		u.awaitHeader(u.timeout)
	case u.broken:
	default:
		u.awaitHeader(lastWords) // perhaps the target has responded and closed
	}
}

// errUploadEnded is the error of an upload whose body has ended its goroutine (runtime.Goexit), as a test's FailNow does. As
// a panic it is the program's fault, and not the target's.
var errUploadEnded = &panics.Error{Value: "the body has ended its goroutine"}

// awaitHeader bounds the wait for the response's header, if that was not received before: how long its body may
// take is not the upload's matter.
func (u *upload) awaitHeader(timeout time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.received {
		return
	}
	if timeout > 0 {
		u.awaited = time.Now()
		u.until = u.awaited.Add(timeout)
	}
	if !u.conn.contain(func() { u.conn.StartReadTimeout(timeout) }) {
		u.conn.Interrupt()
	}
}

// excuse leaves the time since begun out of the time for the response's header, as far as the body had ended by then.
func (u *upload) excuse(begun time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until.IsZero() {
		return
	}
	if u.awaited.After(begun) {
		begun = u.awaited
	}
	u.until = u.until.Add(time.Since(begun))
}

// sendContained is send. A panic of an embedder's own connection ends the call, and not the program.
func (u *upload) sendContained() (err error) {
	defer func() {
		if p, panicked := err.(*panics.Error); panicked {
			u.broken = true
			u.conn.pool.logPanic(p.Value, p.Stack)
		}
	}()
	defer panics.Catch(&err)
	return u.send()
}

func (u *upload) send() error {
	if u.proceed != nil {
		if _, err := u.conn.Write(u.header); err != nil {
			return err
		}
		if !u.awaitContinue() {
			return ErrNotWanted
		}
		u.header = nil
	}
	left, err := u.sendHeader()
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case u.framing.chunked:
		return u.sendChunks()
	}
	return u.sendLength(left)
}

// least is how much room there must be behind the header for a piece of the body.
const least = 1 << 10

// sendHeader sends the header at once, since the body may be a conversation, but in one piece with what has been received of
// that by then. It returns how much is left of a body of known length, and io.EOF if one of unknown length has ended.
func (u *upload) sendHeader() (left int64, err error) {
	left = u.framing.length
	if len(u.header) == 0 {
		return left, nil
	}
	room := u.header[len(u.header):cap(u.header)]
	if len(room) < least || !clientbody.Ready(u.request.Body) {
		_, err := u.conn.Write(u.header)
		return left, err
	}
	var piece []byte
	if u.framing.chunked {
		piece, err = u.readChunk(room)
	} else {
		piece, left, err = u.readPiece(room, left)
	}
	if len(piece) > 0 || err == nil {
		if _, err := u.conn.Write(append(u.header, piece...)); err != nil {
			return left, err
		}
	}
	return left, err
}

// awaitContinue waits until the target requests the body, or does not respond for a while. It reports whether the body is to be
// sent. Of an exchange whose time is bounded most is left for what follows.
func (u *upload) awaitContinue() bool {
	u.hooks.Withheld()
	patience := ExpectTimeout
	if end, bounded := u.request.Context().Deadline(); bounded {
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

// headerReceived is called with the status of each response header.
func (u *upload) headerReceived(status int) {
	if u == nil {
		return
	}
	if status >= 200 {
		u.mu.Lock()
		u.received = true
		u.mu.Unlock()
	}
	if u.proceed == nil || u.decided || status != http.StatusContinue && status < 200 {
		return
	}
	u.decided = true
	u.proceed <- status == http.StatusContinue
}

// Read reads the next piece of the body, and notes whether the body has failed.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.request.Body.Read(p)
	u.broken = err != nil && err != io.EOF && err != ErrNotWanted
	return n, err
}

// readPiece reads the next piece, into buf, of a body of which left bytes remain, and returns how many do then.
func (u *upload) readPiece(buf []byte, left int64) ([]byte, int64, error) {
	n, err := u.Read(buf[:min(int64(len(buf)), left)])
	left -= int64(n)
	switch {
	case left == 0 && (err == nil || err == io.EOF):
		u.startLast()
		err = nil
	case err == io.EOF:
		err = ErrBodyLength
	}
	return buf[:n], left, err
}

// sendLength sends the pieces of a body of known length as they are read. left bytes of it remain.
func (u *upload) sendLength(left int64) error {
	source := u.movable()
	for left > 0 {
		if source != nil && left < u.framing.length {
			n, err := source.Move(lastOf{u, left}, left)
			if left -= n; err != nil {
				return err
			} else if n > 0 {
				continue
			}
		}
		piece, rest, err := u.readPiece(u.buf, left)
		if left = rest; len(piece) > 0 && (err == nil || err == ErrBodyLength) {
			if _, err := u.conn.Write(piece); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	return readEnd(u)
}

// readEnd reads a body's end, which may have an error.
func readEnd(body io.Reader) error {
	var one [1]byte
	n, err := body.Read(one[:])
	if n > 0 {
		return ErrBodyLength
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// startLast notes that the last bytes are about to be written.
func (u *upload) startLast() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = true
}

// finishing reports whether the last bytes are being written, or were.
func (u *upload) finishing() bool {
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
	if !u.finishing() {
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
		if u.err == ErrNotWanted {
			return nil
		}
		return u.err
	default:
		return nil
	}
}
