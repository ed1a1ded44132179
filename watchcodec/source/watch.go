package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
)

// watching is one watch.
type watching struct {
	s        *Source
	cancel   context.CancelFunc
	initial  bool // all objects are sent as events before their changes
	format   watchcodec.Format
	timer    *time.Timer // ends the wait for initial events
	stalled  atomic.Bool
	limit    *time.Timer // ends the watch after Options.MaxWatch
	timedOut atomic.Bool
}

// watch watches from the known version, or with initial events if initial is true.
func (s *Source) watch(ctx context.Context, initial bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.FormatInt(s.timeoutSeconds(initial), 10)}}
	if initial {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		query.Set("resourceVersion", s.version)
	}
	w := &watching{s: s, initial: initial, cancel: cancel}
	err := s.receive(s.request(ctx, query), s.o.Sink.Found, w.open, cancel)
	for _, timer := range []*time.Timer{w.timer, w.limit} {
		if timer != nil {
			timer.Stop()
		}
	}
	return w.outcome(err)
}

// timeoutSeconds returns the duration of a watch to request. As with client-go's reflector, the
// watches of a fleet must not all end at the same time. Initial events may take long, and MaxWatch
// begins after them.
func (s *Source) timeoutSeconds(initial bool) int64 {
	standard := 300 + rand.Int64N(300)
	most := int64(s.o.MaxWatch / time.Second)
	if most <= 0 {
		return standard
	}
	most = max(1, most-rand.N(most/4+1))
	if initial {
		return max(most, standard)
	}
	return most
}

// startInStep is called when the watch is up to date: from now on every change is an event.
func (w *watching) startInStep() {
	w.s.inStep = time.Now()
	if w.s.o.MaxWatch > 0 { // the server may ignore timeoutSeconds
		w.limit = time.AfterFunc(w.s.o.MaxWatch, func() {
			w.timedOut.Store(true)
			w.cancel()
		})
	}
}

func (w *watching) open(f watchcodec.Format) io.WriteCloser {
	w.format = f
	if w.initial {
		w.timer = time.AfterFunc(w.s.o.InitialTimeout, func() {
			w.stalled.Store(true)
			w.cancel()
		})
	} else {
		w.startInStep()
	}
	return watchcodec.NewEventParser(f, w.s.o.MaxObject, w.event)
}

// outcome returns what the end of the watch means to attempt's caller.
func (w *watching) outcome(err error) error {
	var refused *RefusedError
	var failed *sinkError
	switch {
	case errors.As(err, &failed):
		return err
	case errors.As(err, &refused):
		if refused.Status == http.StatusGone {
			return errExpired
		}
		if w.initial && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusUnprocessableEntity || refused.Status == http.StatusNotAcceptable) {
			return errPlain
		}
	case w.initial && w.stalled.Load():
		return errPlain
	case w.timedOut.Load() && !errors.Is(err, errExpired):
		return nil // the next watch continues where this one was
	}
	return err
}

// errKind is the error of an event about an object of unknown kind.
var errKind = errors.New("source: an event with an object of unknown kind or apiVersion")

// event passes one event to the Sink.
func (w *watching) event(e *watchcodec.Event) error {
	if w.initial && e.Type == watchcodec.Added { // others may be changes, from a server that sends no initial events
		w.timer.Reset(w.s.o.InitialTimeout)
	}
	o := &e.Object
	if len(o.Kind()) == 0 || len(o.APIVersion()) == 0 {
		return errKind
	}
	var err error
	switch e.Type {
	case watchcodec.Error:
		return w.failure(o.Value())
	case watchcodec.Bookmark:
		if end, _ := o.Annotation("k8s.io/initial-events-end"); w.initial && string(end) == "true" {
			w.initial = false
			w.timer.Stop()
			w.startInStep()
			defer w.s.o.Sink.Replaced(Collection{w.format, string(o.APIVersion()), string(o.Kind())})
		}
	case watchcodec.Deleted:
		err = w.s.o.Sink.Delete(o)
	default:
		err = w.s.o.Sink.Set(o)
	}
	if version := o.ResourceVersion(); !w.initial && len(version) > 0 {
		w.s.version = string(version)
	}
	return wrapSink(err)
}

// The fields of a Status (k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto).
var (
	statusMessage = watchcodec.Field{Name: "message", Number: 3}
	statusReason  = watchcodec.Field{Name: "reason", Number: 4}
	statusCode    = watchcodec.Field{Name: "code", Number: 6}
)

// failure returns the error that an ERROR event means.
func (w *watching) failure(status watchcodec.Value) error {
	code, _ := status.Get(statusCode)
	n, _ := code.Int()
	if n == http.StatusGone {
		return errExpired
	}
	if w.initial && n != http.StatusGatewayTimeout {
		return errPlain // as from a server over etcd 3.4, which can't support it
	}
	message, _ := status.Get(statusMessage)
	reason, _ := status.Get(statusReason)
	return fmt.Errorf("source: the watch ends with %d %s: %s", n, text(reason), text(message))
}

func text(v watchcodec.Value) string {
	t, _ := v.Text()
	return string(t)
}
