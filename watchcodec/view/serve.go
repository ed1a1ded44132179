package view

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

var errNotSynced = errors.New("view: the Renderer is not synced yet")

// errNotYet is the error of a request whose View was not filled in time.
var errNotYet = errors.New("this gateway does not know yet what to show; retry later")

// refuse responds with the reason why there is nothing to serve: with the server's response, if
// that is a refusal.
func refuse(w http.ResponseWriter, err error) {
	var refused *source.RefusedError
	if err == errNotYet {
		fail(w, watchcodec.NewFailure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error()))
		return
	}
	if !errors.As(err, &refused) {
		watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error()))
		return
	}
	for _, name := range []string{"Content-Type", "Www-Authenticate", "Warning", "Audit-Id"} {
		if values := refused.Header[name]; values != nil {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(refused.Status)
	_, _ = w.Write(refused.Body)
}

// warn adds a Warning with the age of the state if the server is out of reach. client-go displays
// it.
func (v *view) warn(h http.Header) {
	if stale := v.stats().Stale; stale >= time.Second {
		h.Set("Warning", fmt.Sprintf(`299 culvert "the API server has been out of reach for %s; this is what was known before"`, stale.Round(time.Second)))
	}
}

func (v *view) get(w http.ResponseWriter, req watchcodec.Request) {
	namespace := req.Namespace
	if req.Resource == "namespaces" {
		namespace = "" // the path has its own name there
	}
	raw, c := v.find(namespace + "/" + req.Name)
	if raw == nil {
		watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", req.Resource, req.Name)))
		return
	}
	var o watchcodec.Object
	if err := o.Parse(c.Format, c.APIVersion, c.Kind, raw); err != nil {
		watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()))
		return
	}
	body := o.AppendResponse(nil)
	w.Header().Set("Content-Type", c.Format.ContentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func (v *view) list(w http.ResponseWriter, r *http.Request, req watchcodec.Request) {
	out, version, c := v.snapshot()
	if status := v.checkList(req, version); status != nil {
		fail(w, status)
		return
	}
	w.Header().Set("Content-Type", c.Format.ContentType())
	w.Header().Set("Cache-Control", "no-cache, private")
	if r.Method == http.MethodHead {
		return
	}
	list := watchcodec.List{Format: c.Format, APIVersion: c.APIVersion, Kind: c.Kind, ResourceVersion: format(version), Items: out}
	_, _ = list.WriteTo(w)
}

// fail responds with a Status. If that is a 429 or 504, it says when to retry, as the server does.
func fail(w http.ResponseWriter, s *metav1.Status) {
	if s.Code == http.StatusGatewayTimeout || s.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	watchcodec.WriteStatus(w, s)
}

func tooLarge() *metav1.Status {
	s := watchcodec.NewFailure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: Too large resource version")
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}}
	return s
}

func tooOld(version string) *metav1.Status {
	return watchcodec.NewFailure(http.StatusGone, metav1.StatusReasonExpired, "too old resource version: "+version)
}

// parse reads a resourceVersion; "" and "0" are 0.
func parse(text string) (version uint64, status *metav1.Status) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, watchcodec.NewFailure(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("resourceVersion: Invalid value: %q", text))
	}
	return version, nil
}

// checkList returns a Status if the version that a list requests can't be served.
func (v *view) checkList(req watchcodec.Request, now uint64) *metav1.Status {
	requested, status := parse(req.Options.ResourceVersion)
	switch {
	case status != nil:
		return status
	case req.Options.Continue != "":
		return tooOld(req.Options.Continue) // this gateway gives none: its lists are whole
	case requested > now:
		return tooLarge()
	case req.Options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && requested != now:
		return tooOld(req.Options.ResourceVersion)
	}
	return nil
}

// watch serves a watch, which begins at the requested version.
func (v *view) watch(w http.ResponseWriter, r *http.Request, req watchcodec.Request) {
	requested, status := parse(req.Options.ResourceVersion)
	if status != nil {
		v.o.respond(w, r, func(w http.ResponseWriter) { fail(w, status) })
		return
	}
	initial := req.Options.SendInitialEvents != nil && *req.Options.SendInitialEvents
	if initial && req.Options.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		v.o.respond(w, r, func(w http.ResponseWriter) {
			fail(w, watchcodec.NewFailure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
		})
		return
	}
	w.Header().Set("Cache-Control", "no-cache, private")
	ctx, cancel := context.WithTimeout(r.Context(), duration(req))
	defer cancel()
	out, version, c := v.snapshot()
	follow := watchcodec.FollowOptions{After: requested, BookmarkEvery: v.o.BookmarkEvery}
	if req.Options.AllowWatchBookmarks {
		follow.Bookmark = func(version uint64) []byte { return bookmark(c, version, false) }
	}
	switch {
	case requested > version && (initial || v.own(requested)):
		v.sendError(w, r, c, tooLarge())
		return
	case initial || requested == 0:
		follow.After = version
		follow.Before = func(w io.Writer) error { return writeInitial(w, c, out, version, initial) }
	case !v.own(requested) || !v.fanout.Kept(requested):
		v.sendError(w, r, c, tooOld(req.Options.ResourceVersion))
		return
	}
	clientbody.LeaveUnread(w, r) // as respond does
	v.fanout.Follow(w, r.WithContext(ctx), follow)
}

func (v *view) own(version uint64) bool { return v.store.clock.own(version) }

// sendError responds with a watch of one ERROR event.
func (v *view) sendError(w http.ResponseWriter, r *http.Request, c source.Collection, s *metav1.Status) {
	v.o.respond(w, r, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", c.Format.WatchContentType())
		_, _ = w.Write(watchcodec.AppendError(nil, c.Format, s))
	})
}

// duration returns how long a watch lasts: as long as the client requests, else as long as the API
// server's.
func duration(req watchcodec.Request) time.Duration {
	if seconds := req.Options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(min(*seconds, math.MaxInt64/int64(time.Second))) * time.Second
	}
	return 30*time.Minute + rand.N(30*time.Minute)
}

// writeInitial writes the objects as ADDED events, and if initial is true the bookmark that ends
// them.
func writeInitial(w io.Writer, c source.Collection, out [][]byte, version uint64, initial bool) error {
	buffered := bufio.NewWriterSize(w, 32<<10)
	var o watchcodec.Object
	var event []byte
	for _, raw := range out {
		err := o.Parse(c.Format, c.APIVersion, c.Kind, raw)
		if err == nil {
			event, err = watchcodec.AppendEvent(event[:0], watchcodec.Added, &o)
		}
		if err == nil {
			_, err = buffered.Write(event)
		}
		if err != nil {
			return err
		}
	}
	if initial {
		_, _ = buffered.Write(bookmark(c, version, true)) // Flush has its error
	}
	return buffered.Flush()
}

// bookmark returns a BOOKMARK event. If initial is true, it marks the end of the initial events.
func bookmark(c source.Collection, version uint64, initial bool) []byte {
	meta := metav1.ObjectMeta{ResourceVersion: format(version)}
	if initial {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	p := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: c.APIVersion, Kind: c.Kind}, ObjectMeta: meta}
	encode := p.Marshal // its metadata is the field 1, as that of every object
	if c.Format == watchcodec.JSON {
		encode = func() ([]byte, error) { return json.Marshal(&p) }
	}
	raw, err := encode()
	if err != nil {
		panic(err) // every such value can be encoded
	}
	var o watchcodec.Object
	if err := o.Parse(c.Format, c.APIVersion, c.Kind, raw); err != nil {
		panic(err)
	}
	event, err := watchcodec.AppendEvent(nil, watchcodec.Bookmark, &o)
	if err != nil {
		panic(err)
	}
	return event
}
