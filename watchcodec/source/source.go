// Package source follows a resource of a Kubernetes API server: it lists and watches as client-go's
// reflector does, over any http.Handler, and continues where it was after an interruption. It
// handles objects as their bytes.
package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/watchcodec"
)

// Sink receives the server's objects and their changes. Its methods are called by one goroutine.
type Sink interface {
	// Replacing is called before Set is called with all objects anew: at the start, and when the
	// server has forgotten the changes since the last one. It may be called again before Replaced.
	Replacing()
	// Set is called with an object that is new or may have changed. The object is valid until Set
	// returns. An error ends Run.
	Set(o *watchcodec.Object) error
	// Delete is called with an object that was deleted. An error ends Run.
	Delete(o *watchcodec.Object) error
	// Replaced is called when Set was called with all objects since Replacing: there are no others.
	Replaced(c Collection)
	// Lost is called when the server can't be reached, or when its response can't be read: the
	// objects received so far are the last known state.
	Lost(err error)
	// Found is called when the server responds again after Lost.
	Found()
}

// Collection describes the objects of a resource.
type Collection struct {
	// Format is how the server encodes them.
	Format watchcodec.Format
	// APIVersion and Kind are those of each object, "v1" and "Pod" for instance.
	APIVersion, Kind string
}

// Options configures a Source.
type Options struct {
	// Handler responds to lists and watches as an API server does, a proxy to one for instance. If
	// it panics, the response counts as cut off, and Sink.Lost is called. Required.
	Handler http.Handler
	// Request is a request for the collection: its path, labelSelector and fieldSelector, and its
	// header with the credentials and with an Accept for a format that can be read here (see
	// watchcodec.Negotiate). Required; it is not changed.
	Request *http.Request
	// Sink receives the objects. Required.
	Sink Sink
	// MaxObject bounds the size of an object in bytes; 0 means watchcodec.DefaultMaxFrame.
	MaxObject int
	// InitialTimeout bounds the time without an initial event from a server that has accepted to
	// send all objects as events. After it the Source requests a list instead: some proxies accept
	// and send none. 0 means 10 seconds, a negative value no bound.
	InitialTimeout time.Duration
	// MaxWait bounds the time between two attempts to reach the server, which is 100 ms at first
	// and doubles; 0 means 30 seconds, a negative value no bound.
	MaxWait time.Duration
	// MaxWatch bounds the duration of one watch, after which the next one continues it with the
	// credentials of Request: the server checks credentials at the start of a watch only. If they
	// are refused, Run ends with a *RefusedError. 0 means 5 to 10 minutes, as in client-go, and a
	// negative value no bound: a watch lasts as long as the server lets it.
	MaxWatch time.Duration
}

// Source lists and watches a collection.
type Source struct {
	o       Options
	version string    // up to which all is known; "" if the objects have to be listed
	plain   bool      // the server can't send all objects as events
	inStep  time.Time // since when the watch is up to date; zero if it is not yet

	panicked *any // the value with which the sink has panicked
}

// New checks the options and returns a Source, which Run starts.
func New(o Options) (*Source, error) {
	if o.Handler == nil || o.Request == nil || o.Sink == nil {
		return nil, errors.New("source: Options: Handler, Request and Sink are needed")
	}
	if o.MaxObject < 0 {
		return nil, errors.New("source: Options: a negative bound")
	}
	o.InitialTimeout = bound.OrDefault(o.InitialTimeout, 10*time.Second)
	o.MaxWait = bound.OrDefault(o.MaxWait, 30*time.Second)
	o.MaxWatch = bound.OrDefault(o.MaxWatch, 0)
	s := &Source{o: o}
	s.o.Sink = guarded{o.Sink, s}
	return s, nil
}

// minWait is the time between the first two attempts.
const minWait = 100 * time.Millisecond

// goodService is the duration of a watch after which the next wait is minWait again, however the
// watch ends.
const goodService = time.Second

// Run lists and watches until the context ends, the Sink returns an error, or the server refuses
// for good: then the error is a *RefusedError. It must be called once. A panic of the Sink is
// passed on to the caller of Run.
func (s *Source) Run(ctx context.Context) error {
	wait := minWait
	for {
		s.inStep = time.Time{}
		err := s.attempt(ctx)
		served := !s.inStep.IsZero() && time.Since(s.inStep) >= goodService
		if served {
			wait = minWait
		}
		var refused *RefusedError
		var failed *sinkError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &failed):
			return failed.err
		case errors.As(err, &refused) && refused.final():
			return err
		case err == nil && served:
			continue // the watch has timed out
		case errors.Is(err, errExpired):
			s.version = ""
		case err != nil:
			s.o.Sink.Lost(err)
		}
		delay := wait/2 + rand.N(wait/2+1)
		if errors.As(err, &refused) {
			delay = max(delay, min(refused.retryAfter(), s.o.MaxWait))
		}
		if !sleep(ctx, delay) {
			return ctx.Err()
		}
		wait = min(2*wait, s.o.MaxWait)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt takes the next step, a list or a watch, until it ends.
func (s *Source) attempt(ctx context.Context) error {
	if s.version != "" {
		return s.watch(ctx, false)
	}
	s.o.Sink.Replacing()
	if !s.plain {
		err := s.watch(ctx, true)
		if !errors.Is(err, errPlain) {
			return err
		}
		s.plain = true
		s.o.Sink.Replacing()
	}
	if err := s.list(ctx); err != nil {
		return err
	}
	return s.watch(ctx, false)
}

// errExpired is the error of a version whose changes the server has forgotten.
var errExpired = errors.New("source: the server has forgotten the resourceVersion")

// errPlain is the error of a server that does not send all objects as events.
var errPlain = errors.New("source: the server sends no initial events")

// sinkError wraps an error of the Sink.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }

func wrapSink(err error) error {
	if err == nil {
		return nil
	}
	return &sinkError{err}
}

// request returns the next request for the collection. Each has a result of its own: one for all
// requests would grow as long as the Source runs.
func (s *Source) request(ctx context.Context, query url.Values) *http.Request {
	ctx, _ = record.WithNew(ctx)
	r := s.o.Request.Clone(ctx)
	r.Method, r.Body, r.ContentLength, r.RequestURI = http.MethodGet, http.NoBody, 0, ""
	r.TransferEncoding, r.Trailer = nil, nil
	requested := s.o.Request.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if value := requested.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	r.URL.RawQuery = query.Encode()
	for _, name := range []string{
		"Accept-Encoding", // the response has to be readable here
		"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions",
		"Content-Length", "Content-Type", "Content-Encoding",
	} {
		r.Header.Del(name)
	}
	header.RemoveConditions(r.Header)
	return r
}

// serve calls the handler, and returns an error if it panics. It panics if the Sink has panicked.
func (s *Source) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		p := recover()
		if s.panicked != nil { // the handler may have recovered from it
			panic(*s.panicked)
		}
		if p != nil {
			if p != http.ErrAbortHandler {
				err = fmt.Errorf("source: the handler panics: %v", p)
				return
			}
			err = errors.New("source: the response was cut off")
		}
	}()
	s.o.Handler.ServeHTTP(w, r)
	return nil
}
