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
	s       *Source
	cancel  context.CancelFunc
	initial bool // all objects come as events before those that happen
	format  watchcodec.Format
	timer   *time.Timer // until initial events are not waited for any more
	stalled atomic.Bool
	limit   *time.Timer // until the watch has been in use for Options.MaxWatch
	over    atomic.Bool
}

// watch watches from the version that is known, or from the begin.
func (s *Source) watch(ctx context.Context, initial bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(s.timeoutSeconds(initial))}}
	if initial {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		query.Set("resourceVersion", s.version)
	}
	w := &watching{s: s, initial: initial, cancel: cancel}
	a := &answer{header: http.Header{}, found: s.o.Sink.Found, open: w.open, cancel: cancel}
	err := a.end(s.serve(a, s.request(ctx, query)))
	for _, timer := range []*time.Timer{w.timer, w.limit} {
		if timer != nil {
			timer.Stop()
		}
	}
	return w.outcome(err)
}

// timeoutSeconds is how long the server is to let a watch last. As with client-go's reflector, all
// watches of a fleet must not end at the same time. Initial events may take long.
func (s *Source) timeoutSeconds(initial bool) int {
	if most := int(s.o.MaxWatch / time.Second); most > 0 && !initial {
		return max(1, most-rand.IntN(most/4+1))
	}
	return 300 + rand.IntN(300)
}

// begin is called when all that happens from now on is told.
func (w *watching) begin() {
	w.s.inStep = time.Now()
	if w.s.o.MaxWatch > 0 { // whatever the server makes of timeoutSeconds
		w.limit = time.AfterFunc(w.s.o.MaxWatch, func() {
			w.over.Store(true)
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
		w.begin()
	}
	return watchcodec.NewEventWriter(f, w.s.o.MaxObject, w.event)
}

// outcome says what the end of the watch means.
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
	case w.over.Load() && !errors.Is(err, errExpired):
		return nil // the next one continues where this one was
	}
	return err
}

// errKind is that of an event about an object of which is not known what it is.
var errKind = errors.New("source: an event of which the object does not tell its kind and apiVersion")

// event takes one event.
func (w *watching) event(e *watchcodec.Event) error {
	if w.initial && e.Type == watchcodec.Added { // others may be what happens, from a server that does not do what it said
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
			w.begin()
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

// failure is what an ERROR event tells.
func (w *watching) failure(status watchcodec.Value) error {
	code, _ := status.Get(statusCode)
	n, _ := code.Int()
	if n == http.StatusGone {
		return errExpired
	}
	if w.initial && n != http.StatusGatewayTimeout {
		return errPlain // etcd 3.4 lacks what it takes, and this is how it shows
	}
	message, _ := status.Get(statusMessage)
	reason, _ := status.Get(statusReason)
	return fmt.Errorf("source: the watch ends with %d %s: %s", n, text(reason), text(message))
}

func text(v watchcodec.Value) string {
	t, _ := v.Text()
	return string(t)
}
