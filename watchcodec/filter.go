package watchcodec

import (
	"errors"
	"io"
	"math"
	"net/http"
	"slices"

	"github.com/gorilla/websocket"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
)

// FilterOptions configures a filter of the responses to lists, watches and other requests for
// objects.
type FilterOptions struct {
	// Rewriter is called with each request and returns the function that edits the objects of its
	// response. If it returns nil, the request and its response pass unchanged. The bearer token of
	// a watch over WebSocket is in the Authorization field, even if the client has sent it as a
	// subprotocol. Required.
	Rewriter func(*http.Request, Request) Rewriter
	// AllowWrites lets clients write objects that they see rewritten. By default PUT and PATCH are
	// refused (403): a client that reads a trimmed object and writes it back destroys what was
	// trimmed.
	AllowWrites bool
	// Tables lets clients request Tables, which kubectl prefers. A row is hidden with its object,
	// but its cells are the server's: they may contain what a Rewriter removes from the object. By
	// default clients receive objects instead, which kubectl prints by itself with fewer columns.
	Tables bool
	// MaxObject bounds the size of an object in bytes; 0 means DefaultMaxFrame.
	MaxObject int
	// MaxList bounds, in bytes, the part of a list in protobuf that is sent to the client; 0 means
	// 128 MiB. Such a list is held in memory, since its length comes first. A list in JSON is not
	// held: it needs the memory of its largest object.
	MaxList int
}

// NewFilter checks the options and returns a filter over any handler that responds as a Kubernetes
// API server does, a proxy to one for instance. Content that the filter can't read is not passed
// on: a client that accepts no format that can be edited gets a 406, a response in another format
// becomes a 502, as does another object in the place of a list, and a malformed stream ends with an
// ERROR event. So does a stream that ends within an event or within its compression.
//
// The response to a request for one object is held until the next handler has returned, and so is a
// list in protobuf. The header of a list in JSON is held until it is known to be a list. If the
// next handler aborts a held response (http.ErrAbortHandler) or writes less of it than its
// Content-Length, with any status, the client gets a 502, and also if the response for an object
// has no content at all. A response that is not held is cut off in these cases.
//
// The filter requests uncompressed responses; filters.Compress in front of it compresses them
// again. A watch over WebSocket is terminated here, and the server is watched over HTTP. Handshakes
// from pages of other sites are refused.
//
// A watch that continues from a resourceVersion does not show what its client has seen before. So
// when a hidden object is modified, the filter lists the collection as it was before
// (resourceVersionMatch=Exact, in pages of 500), once a watch at most and with the client's
// credentials, and sends the client an event for the object only if the client could see it then.
// If that list fails, the watch ends with 410, Expired, and the client lists again. Meanwhile the
// watch keeps its place in upstream.Target.MaxConns and filters.Concurrency: if no other place is
// free, the list does not wait for one and fails.
//
// A list in pages keeps the server's continue token, even after a page of which the client sees
// nothing. A token of kube-apiserver is not encrypted: it is base64 of JSON whose "start" is the
// key of the page's last object, its namespace and name, even if that object is hidden. So a client
// that requests pages (limit) can learn the namespaces and names of hidden objects, one a page, and
// nothing else of them. If names are secret, remove limit and continue from list requests in front
// of this filter: the list is then whole and has no token.
//
// A HEAD for one object is forwarded as a GET, since only the object shows whether the client sees
// it, and how many bytes it has.
//
// Subresources that are not objects (log, exec, attach, portforward, proxy) pass. If clients must
// not reach those of a hidden object, an authorizer has to refuse them.
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

// streams are the subresources that are not objects.
var streams = []string{"log", "exec", "attach", "portforward", "proxy"}

func (o *FilterOptions) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	req, ok := Classify(r)
	if !ok || req.Verb == "proxy" || slices.Contains(streams, req.Subresource) {
		next.ServeHTTP(w, r)
		return
	}
	viewed := r
	if req.Verb == "watch" && websocket.IsWebSocketUpgrade(r) {
		viewed = withBearer(r)
	}
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	rewrite := o.Rewriter(viewed, req)
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
		refuse(w, r, NewFailure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "this gateway can respond in application/json and "+protobufType+" only"))
		return
	}
	out := header.CloneRequest(r.Context(), r)
	out.Header.Set("Accept", accept)
	out.Header.Del("Accept-Encoding")
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "Range"} {
		out.Header.Del(name) // they refer to the response before it is rewritten
	}
	bare := o.Tables && out.URL.Query().Get("includeObject") == "None"
	if bare { // without its object it is not known what a row is about
		query := out.URL.Query()
		query.Set("includeObject", "Metadata")
		out.URL.RawQuery = query.Encode()
	}
	x := &exchange{bare: bare, isHead: r.Method == http.MethodHead, o: o, rewrite: rewrite, req: req}
	switch req.Verb {
	case "watch":
		watch := func(w http.ResponseWriter, r *http.Request) {
			x.visible = x.newVisible(next, r)
			response.Serve(next, w, r, &response.Hooks{Status: x.status, Body: x.body, Trailer: x.trailer, End: x.stopInflating})
		}
		if websocket.IsWebSocketUpgrade(r) {
			serveWebSocket(watch, w, out, math.MaxInt) // MaxObject has bounded the events already
			return
		}
		watch(w, out)
	case "list", "deletecollection":
		x.late = &lateHeader{ResponseWriter: w}
		x.list(next, out)
	default:
		x.single(next, w, out)
	}
}

// list rewrites a list, piece by piece if its format allows that.
func (x *exchange) list(next http.Handler, r *http.Request) {
	if brokenOff(r, func() {
		response.Serve(next, x.late, r, &response.Hooks{Status: x.status, Body: x.body, Trailer: x.trailer, End: x.stopInflating})
	}) && !x.late.failed && (x.late.status == 0 || !x.late.fail(x, r, io.ErrUnexpectedEOF)) {
		panic(http.ErrAbortHandler)
	}
	x.late.boundWrites(r)
	x.late.send()
	x.late.unboundWrites()
}

// brokenOff calls serve, and reports whether serve has aborted the response to r because the server
// cut it off. If the client has left, the abort is passed on.
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

// refuse responds to r with s in place of the next handler. It does not wait for the request's
// body, and bounds the time that the client has to accept the response.
func refuse(w http.ResponseWriter, r *http.Request, s *metav1.Status) {
	clientbody.LeaveUnread(w, r)
	bounded := deadline.BoundOwn(w, r)
	WriteStatus(bounded, s)
	bounded.Leave()
}

// exchange rewrites the response to one request.
type exchange struct {
	o         *FilterOptions
	rewrite   Rewriter
	req       Request
	format    Format
	bare      bool   // the client requested rows without objects
	refusal   []byte // replaces a response that can't be read
	unchanged bool   // the response passes unchanged
	isHead    bool   // the request is a HEAD: the response has no content
	inflate   *gunzipWriter
	visible   *visibility // of a watch
	late      *lateHeader // of a list
}

// stopInflating stops what Close would have stopped, had the handler not panicked.
func (x *exchange) stopInflating(*http.Request, culvert.ResponseStats) {
	if x.inflate != nil {
		x.inflate.stream.Stop()
	}
}

// status decides how the response is rewritten, and returns its status. A response that is not a
// success has a Status, which reveals no object.
func (x *exchange) status(_ *http.Request, status int, h http.Header) int {
	if x.unchanged = passes(status); x.unchanged {
		return status
	}
	format, unreadable := readableFormat(h)
	x.format = format
	if unreadable == "" {
		header.ContentRewritten(h)
		return status
	}
	x.refusal = encodeStatus(JSON, NewFailure(http.StatusBadGateway, metav1.StatusReasonInternalError, "the server responded in a form that this gateway can't read: "+unreadable))
	header.ContentRewritten(h)
	h.Del("Content-Encoding")
	h.Del("Trailer")
	h.Set("Content-Type", jsonType)
	return http.StatusBadGateway
}

// passes reports whether a response passes unchanged, without regard to its content.
func passes(status int) bool {
	return status < 200 || status > 299 || status == http.StatusNoContent
}

// readableFormat returns the format of the content that h describes, and what of h makes it
// unreadable, if it is.
func readableFormat(h http.Header) (f Format, unreadable string) {
	f, ok := FormatOf(h.Get("Content-Type"))
	if !ok {
		return f, "Content-Type " + h.Get("Content-Type")
	}
	switch encoding := h.Get("Content-Encoding"); encoding {
	case "", "identity", "gzip":
		return f, ""
	default:
		return f, "Content-Encoding " + encoding
	}
}

// trailer deletes the trailers that belong to the server's content.
func (x *exchange) trailer(h http.Header) {
	if x.refusal != nil {
		header.DeleteTrailers(h)
		return
	}
	header.DeleteDigestTrailers(h)
}

// body returns the writer that rewrites the response, nil if the response passes unchanged.
func (x *exchange) body(r *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
	switch {
	case x.unchanged:
		return nil
	case x.isHead: // the header describes the content that a GET would have
		h.Del("Content-Encoding")
		return response.Discard
	case x.refusal != nil:
		return &refused{w, x.refusal}
	}
	var body inflated
	switch {
	case x.req.Verb == "watch":
		body = newWatchWriter(w, x)
	case x.format == JSON:
		body = &listBody{x, r, newJSONListWriter(w, x), false}
	default:
		body = &listBody{x, r, newProtobufListWriter(w, x), false}
	}
	if h.Get("Content-Encoding") == "gzip" {
		h.Del("Content-Encoding")
		x.inflate = newGunzipWriter(body)
		return x.inflate
	}
	return body
}

// listRules returns the rules for the list that the server responds with. It may respond with a
// Status instead, to deletecollection for instance.
func (x *exchange) listRules() listRules {
	return listRules{maxObject: x.o.MaxObject, tables: x.o.Tables, status: true}
}

// listBody replaces a list that can't be read by a Status if nothing of the list was sent.
// Otherwise it cuts the response off.
type listBody struct {
	x       *exchange
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

// Discards implements response.Discards.
func (b *listBody) Discards() bool { return b.refused }

func (b *listBody) Close() error {
	if b.refused {
		return nil
	}
	b.x.late.boundWrites(b.r)
	return b.check(b.list.Close())
}

// unreadable implements inflated.
func (b *listBody) unreadable(err error, ended bool) error {
	if ended {
		b.x.late.boundWrites(b.r)
	}
	return b.check(err)
}

func (b *listBody) check(err error) error {
	if err == nil || b.refused {
		return nil
	}
	if b.refused = b.x.late.fail(b.x, b.r, err); b.refused {
		return nil
	}
	return err
}

// refused sends content, a Status, in place of a response.
type refused struct {
	w       io.Writer
	content []byte
}

func (r *refused) Write(p []byte) (int, error) { return len(p), nil }

// Discards implements response.Discards.
func (r *refused) Discards() bool { return true }

func (r *refused) Close() error {
	_, err := r.w.Write(r.content)
	return err
}
