package replay

import (
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
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/spool"
)

// Options are those of a Body.
type Options struct {
	ReadTimeout  time.Duration  // of a read of the client; 0 means no bound
	WriteTimeout time.Duration  // of the 100 (Continue) that the client expects; 0 means no bound
	Keep         int            // how many bytes are kept for further attempts; what is longer can't be sent again
	AtOnce       bool           // a request that declares an empty body is not held until its stream has ended
	Buffer       *spool.Options // what the body is read into before the first attempt; nil means that it is streamed
}

// Body is the body of one request, from Start until Finish. The zero Body is that of a request without one. Its methods
// are safe for concurrent use, but for Start and Finish, which are the handler's.
type Body struct {
	in       *http.Request
	client   clientbody.Body
	reader   io.Reader // of client; nil: there is no body
	whole    *sharing  // nil: the body is streamed
	isWhole  bool      // whole holds it all
	adopted  bool      // whole was read by an exchange around this one, which has settled the request's length
	trailers []string  // names that were known before the body was read
	keep     int
	panicked atomic.Pointer[any] // what a read has panicked with

	// mu guards what follows, and the state of each Attempt. It is never held while a goroutine reads, waits or calls a
	// function of the program: reading says who owns the client's body meanwhile. Behind it only locks of package
	// clientbody may be taken, which takes none of this package's.
	mu      sync.Mutex
	changed sync.Cond // of mu: reading or the state of an Attempt has changed

	reading   bool   // a goroutine reads client, for an attempt that may have ended since, or to notice a client that leaves
	rest      rest   // what becomes of what the client has not sent yet
	kept      []byte // the body's beginning, unless truncated
	truncated bool
	readAhead []byte    // what was read for an attempt that had ended by then: the next one's
	read      int64     // how much was given to attempts
	end       error     // what reads fail with from now on: io.EOF, or a failure
	lastRead  time.Time // when the last read of client returned
	failure   error     // of the first read that panicked, or the last one that failed
}

var (
	errBodyLost = errors.New("the body's beginning was not kept")
	errReadOver = fmt.Errorf("a read of the body took too long: %w", os.ErrDeadlineExceeded)
	errPanicked = errors.New("a hook panicked")
)

// Start makes b the body of in, the request of client, and returns the request that is to be forwarded. With Options.Buffer
// it reads all of the body. Finish ends it, also behind a failure or a panic.
func (b *Body) Start(client *clientside.Handle, in *http.Request, o Options) (*http.Request, *culvert.Error) {
	if clientbody.DeclaredEmpty(in) && !o.AtOnce {
		var err *culvert.Error
		if in, err = b.awaitEmpty(client, in, o.ReadTimeout); err != nil {
			return in, err
		}
	}
	b.in = in
	if in.ContentLength == 0 || in.Body == nil || in.Body == http.NoBody {
		return in, nil
	}
	b.changed.L, b.keep = &b.mu, o.Keep
	if b.adopt() {
		return in, nil
	}
	b.client.Start(client, in, o.ReadTimeout)
	b.reader = header.TrailerGuard(in, &b.client)
	b.nameTrailers()
	if o.Buffer != nil {
		return in, b.readWhole(*o.Buffer)
	}
	if expectsContinue(in) {
		b.client.ExpectContinue(in, o.WriteTimeout)
	}
	return in, nil
}

// readWhole reads the body before any target is sent the request.
func (b *Body) readWhole(o spool.Options) *culvert.Error {
	b.whole = share(spool.New(o))
	defer func() {
		if !b.isWhole { // also where a filter's body panics
			_ = b.whole.Discard()
		}
	}()
	if o.Name != spool.Unnamed { // or an empty body would have no file
		if err := b.whole.CreateFile(); err != nil {
			return fault(b.in, err)
		}
	}
	n, err := io.Copy(b.whole, b.reader)
	switch {
	case err == nil && n < b.in.ContentLength:
		err = errConsumed
	case err == nil && b.in.ContentLength >= 0 && n > b.in.ContentLength:
		err = http1.ErrBodyLength
	case err == nil:
		b.whole.End(io.EOF)
		b.isWhole = true
		b.nameTrailers()
		return nil
	case errors.Is(err, spool.ErrFull):
		err = &http.MaxBytesError{Limit: o.Memory + o.Disk}
	}
	return fault(b.in, err)
}

// Finish ends the body: behind it nothing reads the client. A panic of a filter's body, or of the trailers' function, on
// another goroutine than the handler's is the handler's here.
func (b *Body) Finish() {
	if b.panicked.Load() != nil {
		b.client.HastenFinish()
	}
	b.client.Finish()
	if b.whole != nil {
		b.whole.release()
	}
	if v := b.panicked.Swap(nil); v != nil {
		if b.whole != nil {
			b.whole.Close() // no handler follows that reads it again
		}
		panic(*v)
	}
}

// Catch is deferred by what calls functions of the program on a goroutine on which a panic would end the program. Finish
// panics in its place, and *err becomes a failure.
func (b *Body) Catch(err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = errPanicked
	value := v // or each call would allocate
	b.panicked.CompareAndSwap(nil, &value)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil {
		b.failure = errPanicked
	}
}

// Exists reports whether the request has a body.
func (b *Body) Exists() bool { return b.reader != nil }

// Client returns the client's side of the body.
func (b *Body) Client() *clientbody.Body { return &b.client }

// Replayable reports whether the body can be sent from its beginning.
func (b *Body) Replayable() bool {
	if b.reader == nil || b.whole != nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.truncated
}

// Failure returns the error of a failed read, nil if there is none so far.
func (b *Body) Failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil && b.reader != nil && b.client.Overdue() { // net/http's server cancels the request before that read returns
		return errReadOver
	}
	return b.failure
}

// Fault returns what err, which Failure has returned, is to the exchange.
func (b *Body) Fault(err error) *culvert.Error { return fault(b.in, err) }

// fault is the error of a body that failed on the client's side, or on the disk that holds it.
func fault(in *http.Request, err error) *culvert.Error {
	e := &culvert.Error{Kind: culvert.BadRequest, Err: err}
	var tooLarge *http.MaxBytesError
	var disk *spool.DiskError
	switch {
	case errors.As(err, &disk), err == errPanicked, errors.Is(err, errTaken):
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
