package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/spool"
)

// bodySource is the client's body, which is read once, and what is kept of it
// for another target.
type bodySource struct {
	in    *http.Request
	body  io.Reader    // nil: there is none
	whole *spool.Spool // nil: the body is streamed

	mu   sync.Mutex // held while body is read
	keep int
	kept []byte // what was read so far, as long as nothing is lost
	read int64
	end  error // the body's end, io.EOF or a failure

	lost    atomic.Bool // kept is not all
	failure atomic.Pointer[error]
}

// open begins with in's body. With a request buffer it reads all of it.
func (s *bodySource) open(w http.ResponseWriter, in *http.Request, o *Options) *fault.Error {
	s.in = in
	if in.ContentLength == 0 || in.Body == nil || in.Body == http.NoBody {
		return nil
	}
	s.keep = o.Retry.KeepBody
	s.body = in.Body
	if o.ReadTimeout > 0 {
		s.body = &timedReader{Reader: in.Body, rc: http.NewResponseController(w), timeout: o.ReadTimeout}
	}
	if o.RequestBuffer == nil {
		return nil
	}
	return s.readWhole(*o.RequestBuffer)
}

// readWhole takes the body in before any target is asked.
func (s *bodySource) readWhole(b Buffer) *fault.Error {
	s.whole = spool.New(spool.Options(b))
	n, err := io.Copy(s.whole, s.body)
	switch {
	case err == nil && n < s.in.ContentLength:
		err = errBodyConsumed
	case err == nil:
		s.whole.End(io.EOF)
		return nil
	case errors.Is(err, spool.ErrFull):
		err = &http.MaxBytesError{Limit: b.Memory + b.Disk}
	}
	s.close()
	return bodyFault(s.in, err)
}

func (s *bodySource) close() {
	if s.whole != nil {
		s.whole.Close()
	}
}

// replayable says whether the body can be sent from its beginning.
func (s *bodySource) replayable() bool { return s.body == nil || s.whole != nil || !s.lost.Load() }

// failed returns the error of a failed read, nil if all went well so far.
func (s *bodySource) failed() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

var (
	errBodyLost = errors.New("the body's beginning was not kept")
	// A filter has read the body and not put it back: whoever waited for the rest
	// would wait for ever (http-proxy-middleware#40).
	errBodyConsumed = errors.New("the body was read before it came to the proxy")
)

// readAt reads on from at: out of what was kept, else from the client.
func (s *bodySource) readAt(p []byte, at int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case at < int64(len(s.kept)):
		return copy(p, s.kept[at:]), nil
	case at != s.read:
		return 0, errBodyLost
	case s.end != nil:
		return 0, s.end
	}
	n, err := s.body.Read(p)
	if length := s.in.ContentLength; err == io.EOF && length > 0 && s.read+int64(n) < length {
		err = errBodyConsumed
	}
	s.note(p[:n], err)
	return n, err
}

func (s *bodySource) note(p []byte, err error) {
	s.read += int64(len(p))
	if len(p) > 0 && !s.lost.Load() {
		if len(s.kept)+len(p) > s.keep {
			s.lost.Store(true)
			s.kept = nil
		} else {
			s.kept = append(s.kept, p...)
		}
	}
	if err != nil {
		s.end = err
		if err != io.EOF {
			failure := err // or each call would allocate
			s.failure.Store(&failure)
		}
	}
}

// bodyFault is the error of a body that failed on the client's side, or on the disk
// that holds it.
func bodyFault(in *http.Request, err error) *fault.Error {
	e := &fault.Error{Kind: fault.BadRequest, Err: err}
	var tooLarge *http.MaxBytesError
	var disk *spool.DiskError
	switch {
	case errors.As(err, &disk):
		e.Kind = fault.Internal
	case errors.As(err, &tooLarge):
		e.Kind = fault.BodyTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http cancels the context as well
		e.Kind = fault.BodyTooSlow
	case errors.Is(in.Context().Err(), context.Canceled):
		e.Kind = fault.ClientGone
	}
	return e
}

// timedReader gives each read of a client's body its time. The deadline is moved
// only when less than that is left, which is much cheaper.
type timedReader struct {
	io.Reader
	rc       *http.ResponseController
	timeout  time.Duration
	deadline time.Time
}

func (r *timedReader) Read(p []byte) (int, error) {
	if now := time.Now(); r.deadline.Sub(now) < r.timeout {
		r.deadline = now.Add(r.timeout + r.timeout/4)
		_ = r.rc.SetReadDeadline(r.deadline)
	}
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		// net/http goes on reading, to notice a client that leaves.
		_ = r.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// requestBody is the body of one try. It keeps the transport from closing the
// client's body, since the next target may still need it.
type requestBody struct {
	source  *bodySource
	expect  *expectation // nil: the client waits for nothing
	whole   io.Reader    // nil: the body is streamed
	trailer func(name string) bool
	out     http.Header // the trailers of this try
	at      atomic.Int64
	ended   atomic.Bool
}

func (b *requestBody) begin(s *bodySource) {
	b.source = s
	if s.body == nil {
		return
	}
	if s.whole != nil {
		b.whole = s.whole.Reader()
		return
	}
	b.expect = newExpectation(s.in)
}

// attach makes b the body of out.
func (b *requestBody) attach(out *http.Request, trailer func(name string) bool) {
	out.GetBody = nil
	if b.source.body == nil {
		out.Body = nil
		return
	}
	out.Body = b
	b.trailer = trailer
	b.attachTrailers(out)
	if b.whole != nil {
		b.attachWhole(out)
	}
}

// attachWhole tells the target of a body that is there as a whole: its length is
// known, and nobody has to be asked for it.
func (b *requestBody) attachWhole(out *http.Request) {
	delete(out.Header, "Expect")
	if out.ContentLength < 0 && len(out.Trailer) == 0 {
		out.ContentLength, out.TransferEncoding = b.source.whole.Len(), nil
	}
}

func (b *requestBody) Read(p []byte) (int, error) {
	if b.ended.Load() {
		return 0, errTryEnded
	}
	if b.expect.refused() {
		return 0, errNotWanted
	}
	n, err := b.next(p)
	b.at.Add(int64(n))
	if err == io.EOF {
		b.copyTrailers()
	}
	return n, err
}

func (b *requestBody) next(p []byte) (int, error) {
	if b.whole != nil {
		n, err := b.whole.Read(p)
		if err != nil && err != io.EOF {
			b.source.failure.Store(&err)
		}
		return n, err
	}
	return b.source.readAt(p, b.at.Load())
}

var errTryEnded = errors.New("another target is asked")

// Close does nothing: net/http's server closes the body after the handler.
func (b *requestBody) Close() error { return nil }

// sent returns how many bytes were handed to the transport.
func (b *requestBody) sent() int64 { return b.at.Load() }

// end ends the try: a transport that still reads gets nothing more.
func (b *requestBody) end() {
	b.ended.Store(true)
	b.expect.end()
}
