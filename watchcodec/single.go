package watchcodec

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/gzip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/response"
)

// single responds with one object, or as if there were none. The response is held: whether
// the client sees the object decides its status. That of a HEAD is the header of a GET, for which the object
// has to be looked at, too.
func (a *answer) single(next http.Handler, w http.ResponseWriter, r *http.Request) {
	held := &heldAnswer{client: w, header: w.Header(), max: a.o.MaxObject}
	if a.head {
		r.Method = http.MethodGet
	}
	broken := brokenOff(r, func() { next.ServeHTTP(held, r) })
	if broken && held.status == 0 {
		panic(http.ErrAbortHandler)
	}
	bounded := deadline.BoundHeld(w, r)
	a.sendObject(bounded, r, held, broken)
	bounded.Leave()
}

// sendObject sends what the client sees of an object that was held, or of one whose server has broken off.
func (a *answer) sendObject(w http.ResponseWriter, r *http.Request, held *heldAnswer, broken bool) {
	held.WriteHeader(http.StatusOK) // unless the handler has
	held.restore(w.Header())
	w.Header().Del("Trailer") // there are none behind a Content-Length
	status := a.status(r, held.status, w.Header())
	content := held.content.Bytes()
	switch {
	case held.over:
		a.fail(w, errTooLarge)
		return
	case broken || held.short():
		a.fail(w, io.ErrUnexpectedEOF)
		return
	case a.refusal != nil:
		content = a.refusal
	case !a.as:
		rewritten, visible, err := a.object(w.Header(), content)
		switch {
		case err != nil:
			a.fail(w, err)
			return
		case !visible:
			clear(w.Header())
			WriteStatus(w, NewFailure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", a.req.Resource, a.req.Name)))
			return
		}
		content = rewritten
	}
	if status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
	w.WriteHeader(status)
	if !a.head {
		_, _ = w.Write(content)
	}
}

func (a *answer) fail(w http.ResponseWriter, err error) {
	clear(w.Header())
	WriteStatus(w, NewFailure(http.StatusBadGateway, metav1.StatusReasonInternalError, "the server's answer can't be read: "+err.Error()))
}

// object rewrites an object. A Status is none: it tells of a success.
func (a *answer) object(h http.Header, content []byte) (rewritten []byte, visible bool, err error) {
	if h.Get("Content-Encoding") == "gzip" {
		if content, err = gunzip(content, a.o.MaxObject); err != nil {
			return nil, false, err
		}
		h.Del("Content-Encoding")
	}
	o := Object{format: a.format}
	before, after := content[:0], content[:0]
	if a.format == Protobuf {
		err = o.open(content)
	} else {
		start := skipSpace(content, 0)
		var end int
		if end, err = o.parseText(content, start); err == nil {
			before, after = content[:start], content[end:]
			if at := skipSpace(after, 0); at < len(after) {
				err = malformed(end + at)
			}
		}
	}
	if err != nil || string(o.kind) == "Status" && string(o.apiVersion) == "v1" {
		return content, err == nil, err
	}
	if string(o.kind) == tableKind && a.o.Tables && a.format == JSON {
		visible, err = rewriteRows(&o, a.rewrite, a.bare)
	} else if string(o.kind) == tableKind || bytes.HasSuffix(o.kind, []byte("List")) {
		return nil, false, fmt.Errorf("a %s in the place of an object", o.kind)
	} else if len(o.kind) == 0 || len(o.apiVersion) == 0 {
		return nil, false, errKind
	} else {
		visible, err = a.rewrite(&o)
	}
	switch {
	case err != nil || !visible:
		return nil, false, err
	case !o.edited:
		return content, true, nil
	case a.format == Protobuf:
		return o.seal(nil, content), true, nil
	}
	return append(append(append([]byte(nil), before...), o.raw...), after...), true, nil
}

func gunzip(p []byte, most int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(z, int64(most)+1))
	if err == nil && len(content) > most {
		err = errTooLarge
	}
	return content, err
}

// heldAnswer keeps a response, without its trailers. Interim ones are dropped.
type heldAnswer struct {
	heldHeader
	client  http.ResponseWriter
	header  http.Header
	status  int
	content bytes.Buffer
	length  int64 // that the header has announced, -1 for none
	max     int
	over    bool
}

func (h *heldAnswer) Header() http.Header { return h.header }

func (h *heldAnswer) WriteHeader(status int) {
	if status < 200 || h.status != 0 {
		return
	}
	h.hold(h.header)
	h.status, h.length = status, -1
	if length, err := strconv.ParseInt(h.header.Get("Content-Length"), 10, 64); err == nil && status != http.StatusNoContent && status != http.StatusNotModified {
		h.length = length
	}
}

// short reports whether the handler has returned before it had written all that it has announced. net/http breaks such a
// response off; here it would get the length that it has.
func (h *heldAnswer) short() bool { return int64(h.content.Len()) < h.length }

func (h *heldAnswer) Write(p []byte) (int, error) {
	if h.WriteHeader(http.StatusOK); h.content.Len()+len(p) > h.max {
		h.over = true
		return 0, &response.TransformError{Err: errTooLarge} // not the client's failure
	}
	return h.content.Write(p)
}

// Unwrap serves http.ResponseController: a handler has to be able to bound the reads of the request's body.
func (h *heldAnswer) Unwrap() http.ResponseWriter { return h.client }

// Flush serves handlers that assert http.Flusher. Nothing is sent before the whole object is
// there.
func (h *heldAnswer) Flush() {}

// FlushError serves http.ResponseController.
func (h *heldAnswer) FlushError() error { return nil }
