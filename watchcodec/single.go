package watchcodec

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/gzip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// single rewrites the response for one object. The response is held, since its status depends on
// whether the client sees the object. A HEAD is forwarded as a GET: the object has to be rewritten
// for it, too.
func (x *exchange) single(next http.Handler, w http.ResponseWriter, r *http.Request) {
	held := &heldResponse{client: w, header: w.Header(), max: x.o.MaxObject}
	if x.isHead {
		r.Method = http.MethodGet
	}
	broken := brokenOff(r, func() { next.ServeHTTP(held, r) })
	if broken && held.status == 0 {
		panic(http.ErrAbortHandler)
	}
	bounded := deadline.BoundHeld(w, r)
	x.sendObject(bounded, r, held, broken)
	bounded.Leave()
}

// sendObject sends what the client sees of a held response. broken reports whether the server has
// cut it off.
func (x *exchange) sendObject(w http.ResponseWriter, r *http.Request, held *heldResponse, broken bool) {
	held.WriteHeader(http.StatusOK) // if the handler has not called it
	held.restore(w.Header())
	w.Header().Del("Trailer") // a response with a Content-Length has none
	status := x.status(r, held.status, w.Header())
	content := held.content.Bytes()
	switch {
	case x.refusal != nil:
		content = x.refusal
	case held.tooLarge:
		x.fail(w, errTooLarge)
		return
	case broken || held.truncated():
		x.fail(w, io.ErrUnexpectedEOF)
		return
	case !x.unchanged:
		rewritten, visible, err := x.object(w.Header(), content)
		switch {
		case err != nil:
			x.fail(w, err)
			return
		case !visible:
			clear(w.Header())
			WriteStatus(w, NewFailure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", x.req.Resource, x.req.Name)))
			return
		}
		content = rewritten
	}
	if status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
	w.WriteHeader(status)
	if !x.isHead {
		_, _ = w.Write(content)
	}
}

func (x *exchange) fail(w http.ResponseWriter, err error) {
	clear(w.Header())
	WriteStatus(w, NewFailure(http.StatusBadGateway, metav1.StatusReasonInternalError, "the server's response can't be read: "+err.Error()))
}

// object rewrites an object. A Status, which reports a success here, passes unchanged.
func (x *exchange) object(h http.Header, content []byte) (rewritten []byte, visible bool, err error) {
	if h.Get("Content-Encoding") == "gzip" {
		if content, err = gunzip(content, x.o.MaxObject); err != nil {
			return nil, false, err
		}
		h.Del("Content-Encoding")
	}
	o := Object{format: x.format}
	before, after := content[:0], content[:0]
	if x.format == Protobuf {
		err = o.open(content)
	} else {
		start := scan.SkipSpace(content, 0)
		var end int
		if end, err = o.parseText(content, start); err == nil {
			before, after = content[:start], content[end:]
			if at := scan.SkipSpace(after, 0); at < len(after) {
				err = scan.Malformed(end + at)
			}
		}
	}
	if err != nil || string(o.kind) == "Status" && string(o.apiVersion) == "v1" {
		return content, err == nil, err
	}
	if string(o.kind) == tableKind && x.o.Tables && x.format == JSON {
		visible, err = rewriteRows(&o, x.rewrite, x.bare)
	} else if string(o.kind) == tableKind || bytes.HasSuffix(o.kind, []byte("List")) {
		return nil, false, fmt.Errorf("a %s in the place of an object", o.kind)
	} else if len(o.kind) == 0 || len(o.apiVersion) == 0 {
		return nil, false, errKind
	} else {
		visible, err = x.rewrite(&o)
	}
	switch {
	case err != nil || !visible:
		return nil, false, err
	case !o.edited:
		return content, true, nil
	case x.format == Protobuf:
		return o.seal(nil, content), true, nil
	}
	return append(append(append([]byte(nil), before...), o.raw...), after...), true, nil
}

func gunzip(p []byte, most int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(z, int64(min(most, math.MaxInt-1))+1))
	if err == nil && len(content) > most {
		err = errTooLarge
	}
	return content, err
}

// heldResponse holds a response without its trailers. It drops interim responses.
type heldResponse struct {
	heldHeader
	client   http.ResponseWriter
	header   http.Header
	status   int
	content  bytes.Buffer
	length   int64 // the Content-Length, -1 for none
	max      int
	tooLarge bool
	refused  bool // content that can't be read: a Status is sent in its place
}

// Header implements http.ResponseWriter.
func (h *heldResponse) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heldResponse) WriteHeader(status int) {
	if status < 200 || h.status != 0 {
		return
	}
	h.hold(h.header)
	h.status, h.length = status, -1
	_, unreadable := readableFormat(h.header)
	h.refused = !passes(status) && unreadable != ""
	if length, err := strconv.ParseInt(h.header.Get("Content-Length"), 10, 64); err == nil && status != http.StatusNoContent && status != http.StatusNotModified {
		h.length = length
	}
}

// HoldsHeader implements clientside.Holder.
func (h *heldResponse) HoldsHeader() bool { return true }

// Discards implements response.Discards.
func (h *heldResponse) Discards() bool { return h.refused }

// truncated reports whether the handler has written less than its Content-Length. net/http would cut
// such a response off; here the filter would make it whole with a new Content-Length.
func (h *heldResponse) truncated() bool { return int64(h.content.Len()) < h.length }

// Write implements http.ResponseWriter: content that is too large is refused.
func (h *heldResponse) Write(p []byte) (int, error) {
	if h.WriteHeader(http.StatusOK); h.content.Len()+len(p) > h.max {
		h.tooLarge = true
		return 0, &response.TransformError{Err: errTooLarge} // not the client's failure
	}
	return h.content.Write(p)
}

// Unwrap is for http.ResponseController: a handler must be able to bound reads of the request's
// body.
func (h *heldResponse) Unwrap() http.ResponseWriter { return h.client }

// Flush is for handlers that assert http.Flusher. It does nothing: the object is sent as a whole.
func (h *heldResponse) Flush() {}

// FlushError is for http.ResponseController.
func (h *heldResponse) FlushError() error { return nil }
