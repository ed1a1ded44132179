// Package source keeps somebody in step with a resource of a Kubernetes API server: it
// lists and watches as client-go's reflector does, over any http.Handler, goes on where it
// was after an interruption, and sees objects as their bytes.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/culvert-go/culvert/internal/result"
	"github.com/culvert-go/culvert/watchcodec"
)

// Sink is told what the server has. It is called by one goroutine.
type Sink interface {
	// Replacing is called before all objects are Set anew: at the begin, and where the
	// server has forgotten what was in between. It may be called again before Replaced.
	Replacing()
	// Set is called with an object that is new or may have changed. It is valid until Set
	// returns. An error ends Run.
	Set(o *watchcodec.Object) error
	// Delete is called with an object that is gone.
	Delete(o *watchcodec.Object) error
	// Replaced is called when all objects were Set since Replacing: there are no others.
	Replaced(c Collection)
	// Lost is called when the server can't be reached, or says what nobody can read; what
	// was told stays the last that is known. Found is called when it answers again.
	Lost(err error)
	Found()
}

// Collection is what the objects of a resource have in common.
type Collection struct {
	Format           watchcodec.Format
	APIVersion, Kind string
}

// Options configures a Source.
type Options struct {
	// Handler answers lists and watches as an API server does, a proxy to one for
	// instance. A panic of it is a response that was cut, which Sink.Lost is called with. Required.
	Handler http.Handler
	// Request is for the collection: its path, labelSelector and fieldSelector, and the
	// header with the credentials and with an Accept of which the answers can be read
	// here (see watchcodec.Negotiate). Required; it is not changed.
	Request *http.Request
	// Sink is told. Required.
	Sink Sink
	// MaxObject bounds an object, in bytes; 0 means watchcodec.DefaultMaxFrame.
	MaxObject int
	// InitialTimeout is how long a server that has accepted to send all objects as events
	// may send none before it is asked for a list instead (there are proxies that say yes
	// and don't); 0 means 10 seconds.
	InitialTimeout time.Duration
	// MaxWait bounds the time between two attempts to reach the server, which begins at
	// 100 ms and doubles; 0 means 30 seconds.
	MaxWait time.Duration
	// MaxWatch bounds the time that one watch is in use before the server is requested to continue
	// it, with the credentials of Request: that is when the server looks at them again. If they
	// are refused, Run ends with a *RefusedError. 0 means 5 to 10 minutes, as client-go has it.
	MaxWatch time.Duration
}

// Source lists and watches.
type Source struct {
	o       Options
	version string    // up to which all is known, "" if it is to be listed
	plain   bool      // the server can't send all objects as events
	inStep  time.Time // since when the watch has told all that happens; zero if it does not yet

	panicked *any // what the sink has panicked with
}

// New checks the options.
func New(o Options) (*Source, error) {
	if o.Handler == nil || o.Request == nil || o.Sink == nil {
		return nil, errors.New("source: Options: Handler, Request and Sink are needed")
	}
	if o.MaxObject < 0 || o.InitialTimeout < 0 || o.MaxWait < 0 || o.MaxWatch < 0 {
		return nil, errors.New("source: Options: a negative bound")
	}
	o.InitialTimeout = cmp.Or(o.InitialTimeout, 10*time.Second)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	s := &Source{o: o}
	s.o.Sink = guarded{o.Sink, s}
	return s, nil
}

// minWait is between the first two attempts.
const minWait = 100 * time.Millisecond

// goodService is how long a watch has to serve for the wait before the next one to be minWait
// again, however it ends.
const goodService = time.Second

// Run lists and watches until the context ends, the sink fails, or the server refuses:
// then the error is a *RefusedError. It must be called once. A panic of the Sink is one of Run.
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
			continue // it has had its time
		case errors.Is(err, errExpired):
			s.version = ""
		case err != nil:
			s.o.Sink.Lost(err)
		}
		if errors.As(err, &refused) {
			wait = max(wait, min(refused.RetryAfter(), s.o.MaxWait))
		}
		if !sleep(ctx, wait/2+rand.N(wait/2)) {
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

// attempt does what is to be done next, until it ends.
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

// errExpired says that the server has forgotten what comes after the version that is known.
var errExpired = errors.New("source: the server has forgotten the resourceVersion")

// errPlain says that the server does not send all objects as events.
var errPlain = errors.New("source: the server sends no initial events")

// sinkError is the sink's.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }

func wrapSink(err error) error {
	if err == nil {
		return nil
	}
	return &sinkError{err}
}

// request returns the next request for the collection. It has a record of its own: one for all would grow as long as the
// Source runs.
func (s *Source) request(ctx context.Context, query url.Values) *http.Request {
	ctx, _ = result.WithNew(ctx)
	r := s.o.Request.Clone(ctx)
	r.Method, r.Body, r.ContentLength, r.RequestURI = http.MethodGet, http.NoBody, 0, ""
	r.TransferEncoding, r.Trailer = nil, nil
	asked := s.o.Request.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if value := asked.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	r.URL.RawQuery = query.Encode()
	for _, name := range []string{
		"Accept-Encoding", // it is to be read here
		"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions",
		"If-None-Match", "If-Modified-Since", "Range", "Content-Length", "Content-Type", "Content-Encoding",
	} {
		r.Header.Del(name)
	}
	return r
}

// serve has the handler respond, and returns the error of its panic. It panics where the sink has.
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
			err = errors.New("source: the answer was cut")
		}
	}()
	s.o.Handler.ServeHTTP(w, r)
	return nil
}
