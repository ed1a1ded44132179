package engine

import (
	"errors"
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/internal/spool"
)

// readBody reads the request's body before the upstream is asked, as nginx does: a slow client holds no upstream, and each
// upstream that is tried gets all of it. The status is that of an error page, 0 if there is none.
// The body stays what was read, also where an error page leads to another upstream.
func (p *passRule) readBody(x *exchange, w http.ResponseWriter) int {
	status := p.takeBody(x, w)
	if status == 0 && p.family.noTrailers {
		x.dropTrailers()
	}
	return status
}

func (p *passRule) takeBody(x *exchange, w http.ResponseWriter) int {
	switch {
	case p.family.noContent:
		return 0
	case x.proxy.body != nil:
		x.rewindBody()
		return 0
	}
	r := x.HTTP
	settings := clientBodySlot.of(x.level)
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		continueEmpty(x, w)
		if !settings.keepsEmpty(r) || p.streamsBody(x) {
			return 0
		}
		r = withEmptyBody(r)
	} else if p.streamsBody(x) {
		if !clientbody.Received(r.Body) {
			return 0
		}
		settings = settings.withoutFile() // a body that is there already is held, as nginx does
	}
	return x.holdBody(w, r, replay.Options{ReadTimeout: settings.timeout, WriteTimeout: settings.sendTimeout, Buffer: settings.spool(r)})
}

// streamsBody reports whether the upstream is sent the body while it is received. As in nginx, that is not so where the body is
// replaced or mirrored, or where the protocol needs the length of one that has none.
func (p *passRule) streamsBody(x *exchange) bool {
	s := p.settings()
	if x.main == nil && mirrorSlot.of(x.level).copiesBodies() {
		return false
	}
	return s.buffers.streamed && s.body == nil && s.passBody && !(p.family.lengths && x.HTTP.ContentLength < 0)
}

// holdBody reads the body of r as a whole, and makes it that of x's request.
func (x *exchange) holdBody(w http.ResponseWriter, r *http.Request, o replay.Options) int {
	var client clientside.Handle
	client.Start(w, r)
	defer client.End()
	var body replay.Body
	defer body.Finish()
	in, err := body.Start(&client, r, o)
	switch {
	case err != nil:
		return x.bodyFailed(w, err)
	case !body.Exists(): // over HTTP/2 the stream has ended without content
		return 0
	}
	x.setBody(body.Again(), in)
	return 0
}

// setBody makes body, which was that of in, the body of x's request.
func (x *exchange) setBody(body *replay.Again, in *http.Request) {
	x.proxy.body, x.Body = body, body
	x.HTTP.Body = body
	if x.HTTP.ContentLength = body.Len(); x.HTTP.ContentLength == 0 {
		x.HTTP.Body = http.NoBody
	}
	for _, values := range in.Trailer {
		if values != nil { // HTTP/1.1 has trailers behind chunks alone
			x.HTTP.ContentLength, x.HTTP.Body = -1, body
			return
		}
	}
	x.HTTP.TransferEncoding, x.HTTP.Trailer = nil, nil
}

// dropTrailers makes of a body that was read with its trailers one of a length.
func (x *exchange) dropTrailers() {
	if x.proxy.body == nil || x.HTTP.ContentLength >= 0 {
		return
	}
	x.HTTP.TransferEncoding, x.HTTP.Trailer = nil, nil
	if x.HTTP.ContentLength = x.proxy.body.Len(); x.HTTP.ContentLength == 0 {
		x.HTTP.Body = http.NoBody
	}
}

// bodyFailed returns the status of a request whose body can't be read. What has come of it must not look like a whole one.
func (x *exchange) bodyFailed(w http.ResponseWriter, err *culvert.Error) int {
	x.HTTP.Body = clientbody.Broken{Err: err.Err}
	var tooLarge *http.MaxBytesError
	var disk *spool.DiskError
	switch {
	case err.Kind == culvert.ClientGone:
		logProxy(x, "", err)
		x.unanswered = true
		return http.StatusBadRequest
	case errors.As(err, &tooLarge):
		x.logError("client intended to send too large chunked body")
	case errors.As(err, &disk):
		x.logAt(levelCrit, err.Error()+" while reading client request body", "")
	default:
		x.logAt(levelInfo, err.Error()+" while reading client request body", "")
	}
	clientbody.RefuseRest(w, x.HTTP)
	return err.Status()
}

// rewindBody makes the body readable from its beginning for another upstream.
func (x *exchange) rewindBody() {
	if x.HTTP.ContentLength == 0 { // it has become a GET
		return
	}
	if _, own := x.HTTP.Body.(*replay.Again); !own {
		_, _ = io.Copy(io.Discard, x.HTTP.Body) // mirror copies what is read
	}
	again := x.proxy.body.Again()
	x.releaseBody()
	x.proxy.body, x.Body, x.HTTP.Body = again, again, again
}

// releaseBody is called when x has ended, and its log has been written.
func (x *exchange) releaseBody() {
	if x.proxy.body != nil {
		_ = x.proxy.body.Close()
	}
}

// keepsEmpty reports whether an empty body of r has a file, too: the request has declared one.
func (s *clientBodySettings) keepsEmpty(r *http.Request) bool {
	return s.spool(r).Memory == 0 && len(r.Header["Content-Length"]) > 0
}

// withEmptyBody returns a copy of r whose body is to be read, and is empty.
func withEmptyBody(r *http.Request) *http.Request {
	r = r.WithContext(r.Context())
	r.ContentLength = -1
	if r.Body == nil || r.Body == http.NoBody {
		r.Body = struct{ io.ReadCloser }{http.NoBody}
	}
	return r
}

// continueEmpty sends the 100 (Continue) that a client expects though it has declared that it sends nothing. nginx sends it, and
// there is no read that would.
func continueEmpty(x *exchange, w http.ResponseWriter) {
	if x.HTTP.ProtoMajor == 1 && x.HTTP.ProtoMinor > 0 && x.main == nil && hasToken(x.HTTP.Header.Get("Expect"), "100-continue") {
		clientside.ServerOf(w).WriteContinue()
	}
}
