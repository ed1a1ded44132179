package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/clientside"
	httpheader "github.com/culvert-go/culvert/internal/header"
)

// Subrequests are requests of other paths of the server that an exchange makes of itself: to
// decide about it (auth_request), as parts of its response (ssi, addition), or beside it
// (mirror). Access rules and logs apply to the client's request only (ngx_http_subrequest).

const (
	maxNesting     = 51    // subrequests inside one another (NGX_HTTP_MAX_SUBREQUESTS)
	maxSubrequests = 10000 // of a client's request: a page that includes itself twice would never end
)

var (
	errSubrequests = errors.New("too many subrequests")
	errIncomplete  = errors.New("a part of the response has broken off")
)

// subrequest returns the exchange of a GET of another path with x's header fields and without a
// body. Its content is written to out; nil discards it. It ends before x continues, and shares
// x's variables. It must be served by include, or by serveSubrequest and rejoin.
func (x *exchange) subrequest(uri, args string, out io.Writer) (*exchange, error) {
	root := x.root()
	if root.parts.made++; x.nesting >= maxNesting || root.parts.made > maxSubrequests {
		x.logError("subrequests cycle while processing \"" + uri + "\"")
		return nil, errSubrequests
	}
	sub := &exchange{Request: x.Part()}
	x.derive(sub, x.HTTP.Context(), uri, args, out)
	sub.HTTP = withoutBody(sub.HTTP)
	sub.HTTP.Method = http.MethodGet
	return sub, nil
}

// branch creates an exchange beside x whose response is discarded, with x's query if target has none. It may outlive x, and its
// writer hides x's.
func (x *exchange) branch(ctx context.Context, target string) *exchange {
	sub := &exchange{Request: x.Branch()}
	uri, args, has := strings.Cut(target, "?")
	if !has {
		args = x.Args
	}
	x.derive(sub, ctx, uri, args, nil)
	sub.apart = true
	return sub
}

// serveCopy serves x, which branch has made, as r, a copy of the client's request. It has no credentials of a CONNECT: they are a
// proxy's, and what r leads to is none.
func (x *exchange) serveCopy(r *http.Request) {
	if x.HTTP.Method == http.MethodConnect {
		r.Header.Del("Authorization")
	}
	x.HTTP = r
	x.serveSubrequest()
}

// derive makes sub an exchange of another path for x's client.
func (x *exchange) derive(sub *exchange, ctx context.Context, uri, args string, out io.Writer) {
	clientside.Hold(x.w)
	sub.engine, sub.server, sub.level, sub.main, sub.nesting = x.engine, x.server, x.server.level, x, x.nesting+1
	sub.URI, sub.Args = uri, args
	sub.Internal, sub.uriChanged = true, true
	w := &subrequestWriter{header: http.Header{}, x: sub, out: out}
	sub.w, sub.Header = w, w.header
	sub.Owner = sub
	sub.link, sub.limits, sub.realIP = x.link, limitState{req: x.limits.req, conn: x.limits.conn}, x.realIP
	sub.link.until = ""
	ctx, sub.Upstream = filters.WithNewResult(ctx)
	sub.HTTP = x.HTTP.Clone(context.WithValue(ctx, exchangeKey{}, sub))
	sub.HTTP.Header.Del("Upgrade")
	sub.HTTP.Header.Del("Connection")
	httpheader.RemoveConditions(sub.HTTP.Header)
}

// partState is that of an exchange and its subrequests.
type partState struct {
	made    int  // subrequests of a client's request, or of a copy of it
	broken  bool // the response of a subrequest is incomplete
	written int64
}

// include serves sub, a part of x's response. The error says that not all of its content has been
// written.
func (x *exchange) include(sub *exchange) error {
	sub.serveSubrequest()
	x.rejoin(sub)
	switch {
	case x.HTTP.Context().Err() != nil:
		return x.HTTP.Context().Err()
	case sub.parts.broken:
		return errIncomplete
	}
	return nil
}

// rejoin has x continue after a subrequest, with what both share.
func (x *exchange) rejoin(sub *exchange) {
	x.link.join(sub.link)
	x.realIP, x.HTTP.RemoteAddr = sub.realIP, sub.HTTP.RemoteAddr // of the connection
}

// serveSubrequest runs the subrequest. An upstream's response that breaks off after its header
// counts as a response, which is broken.
func (x *exchange) serveSubrequest() {
	defer x.releaseBody()
	defer func() {
		if e := recover(); e != nil {
			if x.parts.broken = true; e != http.ErrAbortHandler {
				panic(e)
			}
		}
	}()
	if x.slices != nil {
		if x.filtered([]func(*exchange) culvert.Filter{joinSlices}, x.w, (*exchange).contentPhase) != 0 {
			x.parts.broken = true
		}
		return
	}
	status := x.begin()
	for status != 0 && x.stub == nil {
		status = x.special(status)
	}
	if x.stub != nil && x.parts.written == 0 {
		x.serveStub(x.w.(*subrequestWriter))
	}
	if logSlot.of(x.level).subrequests {
		logRequest(x)
	}
}

// begin serves the subrequest where it begins.
func (x *exchange) begin() int {
	if x.entry != "" {
		return x.redirectNamed(x.w, x.entry)
	}
	return x.process(x.w)
}

// subrequestWriter is the ResponseWriter of a subrequest.
type subrequestWriter struct {
	header http.Header
	x      *exchange
	out    io.Writer // of the content; nil: it is discarded
}

func (w *subrequestWriter) Header() http.Header { return w.header }

func (w *subrequestWriter) WriteHeader(status int) {
	if w.x.Status == 0 && status >= 200 {
		w.x.Status = status
	}
}

// Discards ends the exchange with an upstream at its header, as header_only does in nginx.
func (w *subrequestWriter) Discards() bool { return w.out == nil }

func (w *subrequestWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.out == nil {
		return len(p), nil
	}
	n, err := w.out.Write(p)
	w.x.parts.written += int64(n)
	w.x.parts.broken = w.x.parts.broken || err != nil
	return n, err
}

// FlushError sends the client what was written, for http.ResponseController.
func (w *subrequestWriter) FlushError() error {
	if f, ok := w.out.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return nil
}

// safePath decodes a URI of a document or of an upstream, which may be meant to lead anywhere
// (ngx_http_parse_unsafe_uri). ok is false if it does.
func safePath(uri string) (path, args string, ok bool) {
	path, args, _ = strings.Cut(uri, "?")
	path, err := url.PathUnescape(path)
	if err != nil || path == "" || strings.IndexByte(path, 0) >= 0 || slices.Contains(strings.Split(path, "/"), "..") {
		return "", "", false
	}
	return path, args, true
}
