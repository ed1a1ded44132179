package watchcodec

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/gorilla/websocket"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/response"
)

// FilterOptions configures a filter of list and watch answers.
type FilterOptions struct {
	// Rewriter is called for each request and returns the function that edits the objects of its
	// response; nil from it means that the request and its response pass as they are. The bearer token of a
	// watch over WebSocket is in the Authorization field, also where the client has given it as a
	// subprotocol. Required.
	Rewriter func(*http.Request, Request) Rewriter
	// AllowWrites lets clients write to what they see rewritten. By default PUT and PATCH
	// are refused (403): a client that read a trimmed object and writes it back destroys
	// what was trimmed.
	AllowWrites bool
	// Tables lets clients have Tables, which kubectl prefers. A row is hidden with its
	// object, but its cells are the server's: what a Rewriter edits away may stand in
	// them. By default such clients get objects, which kubectl prints by itself with
	// fewer columns.
	Tables bool
	// MaxObject bounds an object, in bytes; 0 means DefaultMaxFrame.
	MaxObject int
	// MaxList bounds what a client is sent of a list in protobuf, which is held since its
	// length comes first there, in bytes; 0 means 128 MiB. A list in JSON is not held:
	// its memory is that of its largest object.
	MaxList int
}

// NewFilter checks the options and returns a filter over any handler that answers as a
// Kubernetes API server does, a proxy to one for instance. What it can't read it does not
// pass on: a client that accepts no format that can be edited gets a 406, a response in
// another format becomes a 502, and a malformed stream ends with an ERROR event,
// as does one that ends in the middle of an event or of its compression.
//
// The response to a request for one object is held until the next handler has returned, and so is a list in protobuf; the
// header of a list in JSON is held until its first byte. If the next handler aborts a response that is held
// (http.ErrAbortHandler) or writes less of it than its Content-Length, whatever its status, the client gets a 502. So
// it does where an object has no content at all. A response that is not held is broken off then.
//
// The server is asked for an uncompressed answer; filters.Compress in front of this filter
// compresses it again. A watch over WebSocket ends here, with the server watched over
// HTTP; other sites' pages are refused.
//
// A watch that continues from a resourceVersion does not show what its client has seen before.
// So when an object that is not seen is modified, the filter lists what the watch is about as it
// was before (resourceVersionMatch=Exact, in pages of 500), once a watch at most and with the client's
// credentials, and tells the client of the object only if it was seen then. If that list
// can't be had, the watch ends with 410, Expired, and the client lists again. The watch holds its place meanwhile
// (upstream.Target.MaxConns, filters.Concurrency): where no other one is free the list does not wait for one, and can't be had.
//
// A list in pages keeps the server's continue token, also behind a page of which nothing is seen. A token of
// kube-apiserver is not encrypted: base64 of JSON whose "start" is the key of the page's last object, namespace and
// name, be it hidden or not. A client that pages through a list (limit) can so learn the namespaces and names of hidden
// objects, one a page, and nothing else of them. Where names are secret, drop limit and continue from list requests in
// front of this filter: the list is whole then, and has no token.
//
// A HEAD for one object is forwarded as a GET, since only the object tells whether its client sees it, and for how
// many bytes.
//
// Subresources that are no
// objects (log, exec, attach, portforward, proxy) pass: whoever must not reach a hidden
// object's needs an authorizer.
func NewFilter(o FilterOptions) (func(http.Handler) http.Handler, error) {
	if o.Rewriter == nil {
		return nil, errors.New("watchcodec: FilterOptions without a Rewriter")
	}
	if o.MaxObject < 0 || o.MaxList < 0 {
		return nil, errors.New("watchcodec: FilterOptions: a negative bound")
	}
	if o.MaxObject == 0 {
		o.MaxObject = DefaultMaxFrame
	}
	if o.MaxList == 0 {
		o.MaxList = 128 << 20
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.serve(next, w, r) })
	}, nil
}

// streams are the subresources that carry no objects.
var streams = []string{"log", "exec", "attach", "portforward", "proxy"}

func (o *FilterOptions) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	req, ok := Classify(r)
	if !ok || req.Verb == "proxy" || slices.Contains(streams, req.Subresource) {
		next.ServeHTTP(w, r)
		return
	}
	who := r
	if req.Verb == "watch" && websocket.IsWebSocketUpgrade(r) {
		who = bearing(r)
	}
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	rewrite := o.Rewriter(who, req)
	returned = true
	if rewrite == nil {
		next.ServeHTTP(w, r)
		return
	}
	accept, ok := negotiate(r.Header["Accept"], o.Tables)
	switch {
	case !o.AllowWrites && (req.Verb == "update" || req.Verb == "patch"):
		refuse(w, r, NewFailure(http.StatusForbidden, metav1.StatusReasonForbidden, "this gateway shows "+req.Resource+" changed or in part; writing them back through it would destroy what it does not show"))
		return
	case r.Method == http.MethodConnect: // an extended one over HTTP/2 (RFC 8441) is forwarded as an upgrade
		refuse(w, r, NewFailure(http.StatusBadRequest, metav1.StatusReasonBadRequest, "this gateway opens no tunnels here"))
		return
	case r.Header.Get("Upgrade") != "" && !(req.Verb == "watch" && websocket.IsWebSocketUpgrade(r)):
		refuse(w, r, NewFailure(http.StatusBadRequest, metav1.StatusReasonBadRequest, "this gateway upgrades nothing here but watches, to WebSockets"))
		return
	case !ok:
		refuse(w, r, NewFailure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "this gateway can answer in application/json and "+protobufType+" only"))
		return
	}
	out := head.CloneRequest(r.Context(), r)
	out.Header.Set("Accept", accept)
	out.Header.Del("Accept-Encoding")
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "Range"} {
		out.Header.Del(name) // they are about the answer before it is rewritten
	}
	bare := o.Tables && out.URL.Query().Get("includeObject") == "None"
	if bare { // without them nobody would know what a row is about
		query := out.URL.Query()
		query.Set("includeObject", "Metadata")
		out.URL.RawQuery = query.Encode()
	}
	a := &answer{bare: bare, head: r.Method == http.MethodHead, o: o, rewrite: rewrite, req: req}
	switch req.Verb {
	case "watch":
		watch := func(w http.ResponseWriter, r *http.Request) {
			a.visible = a.newVisible(next, r)
			response.Serve(next, w, r, &response.Hooks{Status: a.status, Body: a.body, End: a.end})
		}
		if websocket.IsWebSocketUpgrade(r) {
			serveWebSocket(watch, w, out)
			return
		}
		watch(w, out)
	case "list", "deletecollection":
		a.late = &lateHead{ResponseWriter: w}
		a.list(next, out)
	default:
		a.single(next, w, out)
	}
}

// list responds with a list, as it comes where its form allows that.
func (a *answer) list(next http.Handler, r *http.Request) {
	if brokenOff(r, func() {
		response.Serve(next, a.late, r, &response.Hooks{Status: a.status, Body: a.body, End: a.end})
	}) && !a.late.failed && (a.late.status == 0 || !a.late.fail(a, r, io.ErrUnexpectedEOF)) {
		panic(http.ErrAbortHandler)
	}
	a.late.finish(r)
	a.late.send()
	a.late.leave()
}

// brokenOff calls serve, and reports whether that has aborted the response to r since the server broke off. Where the
// client has left, the abort is passed on.
func brokenOff(r *http.Request, serve func()) (broken bool) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == http.ErrAbortHandler && r.Context().Err() == nil:
			broken = true
		default:
			panic(p)
		}
	}()
	serve()
	return false
}

// refuse responds to r with s in place of the next handler. A client that does not send the request's body
// can't hold the response up, nor can one that does not accept it.
func refuse(w http.ResponseWriter, r *http.Request, s *metav1.Status) {
	clientbody.LeaveUnread(w, r)
	bounded := deadline.BoundOwn(w, r)
	WriteStatus(bounded, s)
	bounded.Leave()
}

// answer is the answer to one request.
type answer struct {
	o       *FilterOptions
	rewrite Rewriter
	req     Request
	format  Format
	bare    bool   // the client wants rows without objects
	refusal []byte // in the place of an answer that can't be read
	as      bool   // it passes as it is
	head    bool   // it has no content
	inflate *gunzipWriter
	visible *Visible  // of a watch
	late    *lateHead // of a list
}

// end ends what Close would have ended, had the handler not panicked.
func (a *answer) end(*http.Request, response.Stats) {
	if a.inflate != nil {
		a.inflate.stop()
	}
}

// describing are the fields that describe the content before it is rewritten.
var describing = []string{"Content-Length", "Etag", "Digest", "Content-Digest", "Repr-Digest", "Content-Md5", "Last-Modified", "Accept-Ranges"}

// status decides what becomes of an answer. One that is no success has a Status, which
// tells of no object.
func (a *answer) status(_ *http.Request, status int, h http.Header) int {
	if a.as = status < 200 || status > 299 || status == http.StatusNoContent; a.as {
		return status
	}
	format, ok := FormatOf(h.Get("Content-Type"))
	a.format = format
	encoding := h.Get("Content-Encoding")
	if ok && (encoding == "" || encoding == "identity" || encoding == "gzip") {
		for _, name := range describing {
			h.Del(name)
		}
		return status
	}
	what := h.Get("Content-Type")
	if ok {
		what = "Content-Encoding " + encoding
	}
	a.refusal = encodeStatus(JSON, NewFailure(http.StatusBadGateway, metav1.StatusReasonInternalError, "the server answered in a form that this gateway can't read: "+what))
	for _, name := range append(describing, "Content-Encoding", "Trailer") {
		h.Del(name)
	}
	h.Set("Content-Type", jsonType)
	return http.StatusBadGateway
}

// body returns what takes the answer.
func (a *answer) body(r *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
	switch {
	case a.as:
		return nil
	case a.head: // of what a GET would have
		h.Del("Content-Encoding")
		return response.Discard
	case a.refusal != nil:
		return &refused{w, a.refusal}
	}
	var body inflated
	switch {
	case a.req.Verb == "watch":
		body = newWatchWriter(w, a)
	case a.format == JSON:
		body = &listBody{a, r, newJSONListWriter(w, a), false}
	default:
		body = &listBody{a, r, newProtobufListWriter(w, a), false}
	}
	if h.Get("Content-Encoding") == "gzip" {
		h.Del("Content-Encoding")
		a.inflate = newGunzipWriter(body)
		return a.inflate
	}
	return body
}

// listBody answers with a Status in the place of a list that can't be read, as long as
// nothing of it was sent; afterwards the answer is cut.
type listBody struct {
	a       *answer
	r       *http.Request
	list    io.WriteCloser
	refused bool
}

func (b *listBody) Write(p []byte) (int, error) {
	if b.refused {
		return len(p), nil
	}
	if _, err := b.list.Write(p); err != nil {
		if err = b.check(err); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (b *listBody) Close() error {
	if b.refused {
		return nil
	}
	b.a.late.finish(b.r)
	return b.check(b.list.Close())
}

// unreadable serves the gunzipWriter.
func (b *listBody) unreadable(err error, ended bool) error {
	if ended {
		b.a.late.finish(b.r)
	}
	return b.check(err)
}

func (b *listBody) check(err error) error {
	if err == nil {
		return nil
	}
	if b.refused = b.a.late.fail(b.a, b.r, err); b.refused {
		return nil
	}
	return err
}

// refused sends a Status in the place of an answer.
type refused struct {
	w       io.Writer
	content []byte
}

func (r *refused) Write(p []byte) (int, error) { return len(p), nil }

func (r *refused) Close() error {
	_, err := r.w.Write(r.content)
	return err
}
