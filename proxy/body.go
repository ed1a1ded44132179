package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/iolock"
	"github.com/culvert-go/culvert/internal/spool"
)

// bodySource is the client's body, which is read once, and what is kept of it
// for another target.
type bodySource struct {
	in    *http.Request
	body  io.Reader    // client, nil: there is none
	whole *spool.Spool // nil: the body is streamed

	client clientbody.Body

	trailers []string // names that were known before the body was read

	lock  iolock.Lock // guards what follows; held while a read waits for the client
	keep  int
	kept  []byte // what was read so far, as long as nothing is lost
	ahead []byte // what was read for a try that had ended by then: the next one's
	read  int64
	end   error // the body's end, io.EOF or a failure
	last  int64 // when the last read of the client returned, Unix time in nanoseconds; 0 before

	turn sync.Mutex // held while it is settled whose a piece is; guards rest
	rest rest

	lost     atomic.Bool // kept is not all
	failure  atomic.Pointer[error]
	panicked atomic.Pointer[any] // what a read has panicked with

	interims interimTime // of the last attempt
}

// start begins with in's body, and returns the request that is to be forwarded.
func (s *bodySource) start(w http.ResponseWriter, in *http.Request, o *Options) (*http.Request, *culvert.Error) {
	if clientbody.DeclaredEmpty(in) {
		var err *culvert.Error
		if in, err = s.awaitNone(w, in, o.ReadTimeout); err != nil {
			return in, err
		}
	}
	return in, s.open(w, in, o)
}

// open begins with in's body. With a request buffer it reads all of it. close ends it, also behind a failure or a panic.
func (s *bodySource) open(w http.ResponseWriter, in *http.Request, o *Options) *culvert.Error {
	s.in = in
	if in.ContentLength == 0 || in.Body == nil || in.Body == http.NoBody {
		return nil
	}
	s.keep = o.Retry.KeepBody
	s.client.Start(w, in, o.ReadTimeout)
	s.body = header.TrailerGuard(in, &s.client)
	s.nameTrailers()
	if o.RequestBuffer == nil {
		if expectsContinue(in) {
			s.client.ExpectContinue(in, o.WriteTimeout)
		}
		return nil
	}
	return s.readWhole(*o.RequestBuffer)
}

// readWhole takes the body in before any target is asked.
func (s *bodySource) readWhole(b Buffer) *culvert.Error {
	s.whole = spool.New(spool.Options(b))
	n, err := io.Copy(s.whole, s.body)
	switch {
	case err == nil && n < s.in.ContentLength:
		err = errBodyConsumed
	case err == nil && s.in.ContentLength >= 0 && n > s.in.ContentLength:
		err = errLength
	case err == nil:
		s.whole.End(io.EOF)
		s.nameTrailers()
		return nil
	case errors.Is(err, spool.ErrFull):
		err = &http.MaxBytesError{Limit: b.Memory + b.Disk}
	}
	return bodyFault(s.in, err)
}

// close ends the body. A panic of a filter's body, or of the trailers' function, on another goroutine than the handler's is
// the handler's here.
func (s *bodySource) close() {
	if s.panicked.Load() != nil {
		s.client.HastenFinish()
	}
	s.client.Finish()
	if s.whole != nil {
		s.whole.Close()
	}
	if v := s.panicked.Swap(nil); v != nil {
		panic(*v)
	}
}

// catch is deferred by what reads the body on a goroutine on which a panic would end the program. The read fails.
func (s *bodySource) catch(err *error) {
	if v := recover(); v != nil {
		value := v // or each call would allocate
		s.panicked.CompareAndSwap(nil, &value)
		*err = errPanicked
		failure := error(errPanicked)
		s.failure.CompareAndSwap(nil, &failure)
	}
}

// replayable says whether the body can be sent from its beginning.
func (s *bodySource) replayable() bool { return s.body == nil || s.whole != nil || !s.lost.Load() }

// failed returns the error of a failed read, nil if all went well so far.
func (s *bodySource) failed() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	if s.body != nil && s.client.Overdue() { // net/http's server cancels the request before that read returns
		return errReadOver
	}
	return nil
}

var errReadOver = fmt.Errorf("a read of the body took too long: %w", os.ErrDeadlineExceeded)

var (
	errBodyLost = errors.New("the body's beginning was not kept")
	// A filter has read the body and not put it back: whoever waited for the rest
	// would wait for ever (http-proxy-middleware#40).
	errBodyConsumed = errors.New("the body was read before it came to the proxy")
)

// readAt reads on from at for a try: out of what was kept, else from the client.
func (s *bodySource) readAt(p []byte, at int64, by *requestBody) (n int, err error) {
	if n := s.replay(p, at); n > 0 {
		return n, nil // though a try that has ended may still wait for the client
	}
	by.awaits.Store(true)
	defer func() { by.awaits.Store(errors.Is(err, os.ErrDeadlineExceeded)) }()
	s.lock.Lock()
	defer s.lock.Unlock()
	defer func() { by.lastRead.Store(s.last) }()
	return s.readOn(p, at, by)
}

// readOn is readAt behind what was kept. The caller holds s.lock.
func (s *bodySource) readOn(p []byte, at int64, by *requestBody) (int, error) {
	switch {
	case at < int64(len(s.kept)):
		return copy(p, s.kept[at:]), nil
	case at != s.read:
		return 0, errBodyLost
	case len(s.ahead) > 0:
		n := copy(p, s.ahead)
		return s.settle(p[:n], s.ahead[n:], by)
	case s.end != nil:
		return 0, s.end
	}
	s.end = errPanicked // of a read that does not return: what follows is not the body's continuation
	n, err := s.readDeclared(p)
	s.end = nil
	s.last = time.Now().UnixNano()
	s.noteEnd(err)
	if n, turn := s.settle(p[:n], nil, by); turn != nil {
		return n, turn
	}
	return n, err
}

// replay reads what was kept.
func (s *bodySource) replay(p []byte, at int64) int {
	s.turn.Lock()
	defer s.turn.Unlock()
	if at >= int64(len(s.kept)) {
		return 0
	}
	return copy(p, s.kept[at:])
}

// settle gives p to a try, and leaves the rest ahead. Where the try has ended, or waits, since its
// bytes were asked for they stay with the rest, for whoever reads on.
func (s *bodySource) settle(p, rest []byte, by *requestBody) (int, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if by.ended.Load() || by.paused != nil {
		s.ahead = append(bytes.Clone(p), rest...)
		return 0, errNotItsTurn
	}
	s.ahead = rest
	s.note(p)
	return len(p), nil
}

func (s *bodySource) note(p []byte) {
	s.read += int64(len(p))
	if len(p) > 0 && !s.lost.Load() {
		if len(s.kept)+len(p) > s.keep {
			s.lost.Store(true)
			s.kept = nil
		} else {
			s.kept = append(s.kept, p...)
		}
	}
}

func (s *bodySource) noteEnd(err error) {
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
func bodyFault(in *http.Request, err error) *culvert.Error {
	e := &culvert.Error{Kind: culvert.BadRequest, Err: err}
	var tooLarge *http.MaxBytesError
	var disk *spool.DiskError
	switch {
	case errors.As(err, &disk), err == errPanicked:
		e.Kind = culvert.Internal
	case errors.As(err, &tooLarge):
		e.Kind = culvert.BodyTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http cancels the context as well
		e.Kind = culvert.BodyTooSlow
	case errors.Is(in.Context().Err(), context.Canceled):
		e.Kind = culvert.ClientGone
	}
	return e
}

// requestBody is the body of one try. It keeps the transport from closing the
// client's body, since the next target may still need it.
type requestBody struct {
	source  *bodySource
	ctx     context.Context // the attempt's, by which its failure is classified
	expect  *expectation    // nil: the client waits for nothing
	whole   io.Reader       // nil: the body is streamed
	watch   *uploadWatch    // nil: nothing watches how long a piece is not accepted
	trailer func(name string) bool
	out     http.Header // the trailers of this try
	at      atomic.Int64
	ended   atomic.Bool
	paused  chan struct{} // closed when the try may go on, or has ended; nil: it may
	clientWait
	leavable
}

func (b *requestBody) begin(s *bodySource) {
	b.source = s
	if s.body == nil {
		return
	}
	b.want()
	if s.whole != nil {
		b.whole = s.whole.Reader()
		return
	}
	b.expect = newExpectation(s.in)
}

// attach makes b the body of out. ctx is the attempt's.
func (b *requestBody) attach(ctx context.Context, out *http.Request, trailer func(name string) bool) {
	b.ctx = ctx
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
	if out.ContentLength < 0 {
		// Of a method that seldom has a body net/http's transport would hold the header back for 200 ms, to see a first
		// byte. The connection that it has taken may end meanwhile, or get a response that belongs to no request.
		out.TransferEncoding = chunked
	}
}

// attachWhole tells the target of a body that is there as a whole: its length is
// known, and nobody has to be asked for it.
func (b *requestBody) attachWhole(out *http.Request) {
	if out.Header["Expect"] != nil { // the map is shared with attempts that may still be read
		delete(out.Header, "Expect")
	}
	if out.ContentLength < 0 && len(out.Trailer) == 0 {
		out.ContentLength, out.TransferEncoding = b.source.whole.Len(), nil
	}
}

func (b *requestBody) Read(p []byte) (n int, err error) {
	defer b.source.catch(&err)
	b.watch.accepted()
	defer b.reading.Store(false)
	if b.beginRead() || b.ended.Load() {
		return 0, errTryEnded
	}
	if b.expect.ask() {
		b.abandon()
		if err := b.expect.wait(b.ctx); err != nil {
			return 0, err
		}
		b.want()
	}
	n, err = b.readOrLeave(p)
	b.at.Add(int64(n))
	if n > 0 || err == io.EOF {
		b.watch.given()
	}
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
	for {
		n, err := b.source.readAt(p, b.at.Load(), b)
		if err != errNotItsTurn {
			return n, err
		}
		if !b.waitTurn() {
			return 0, errTryEnded
		}
	}
}

var (
	errTryEnded   = errors.New("another target is asked")
	errNotItsTurn = errors.New("not this try's turn")
)

// pause holds back what comes from the client while it is decided whether another target gets it.
func (b *requestBody) pause() {
	b.source.turn.Lock()
	defer b.source.turn.Unlock()
	b.paused = make(chan struct{})
}

// resume ends pause, and the try with it where another target is asked.
func (b *requestBody) resume(another bool) {
	b.source.turn.Lock()
	defer b.source.turn.Unlock()
	b.ended.Store(another)
	close(b.paused)
	b.paused = nil
}

// waitTurn waits while the try is paused, and says whether it goes on.
func (b *requestBody) waitTurn() bool {
	b.source.turn.Lock()
	paused := b.paused
	b.source.turn.Unlock()
	if paused != nil {
		<-paused
	}
	return !b.ended.Load()
}

// Close is called by a transport that reads no more. The client's body ends with the handler.
func (b *requestBody) Close() error {
	b.watch.accepted()
	b.abandon()
	b.leaveUnread()
	return nil
}

// sent returns how many bytes were handed to the transport.
func (b *requestBody) sent() int64 { return b.at.Load() }

// end ends the try: a transport that still reads gets nothing more.
func (b *requestBody) end() {
	b.source.turn.Lock()
	b.ended.Store(true)
	b.source.turn.Unlock()
	b.expect.settle(expectOver)
}
