package engine

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// maxRedirects bounds the internal redirects of a request, as nginx does
// (NGX_HTTP_MAX_URI_CHANGES).
const maxRedirects = 10

// exchange is one request that is processed according to the configuration.
type exchange struct {
	vars.Request
	engine  *Engine
	socket  *socket
	server  *server
	level   *level // the current one
	context exchangeContext
	request http.Request        // the first value of HTTP
	w       http.ResponseWriter // the client's

	main    *exchange // the exchange of a subrequest's parent, nil for a client's request
	apart   bool      // it runs beside its parent: nothing that changes is shared with it
	nesting int       // the number of exchanges around a subrequest
	parts   partState
	entry   string    // the named location that a subrequest begins in; "": that of its path
	stub    *ssiBlock // of a subrequest that shows it if it has no other content

	refused      int // the status by which the request is refused before its location is known, 0 if it is not
	refusal      refusal
	cleartext    bool     // it was sent without TLS to a port of TLS
	named        bool     // the client has named a host
	unanswered   bool     // the connection is closed without a response, and errStatus is logged
	withheld     bool     // the response is a 500 in place of one that depends on a match which was given up
	errStatus    int      // the status that an error page is sent with, 0 for its own
	redirects    int      // internal redirects and changes of the path so far
	uriRewritten bool     // the path was rewritten inside its location, which need not match it any more
	uriChanged   bool     // path and query differ from those that the client sent
	behindAlias  bool     // try_files has found the path behind the alias of a regular expression
	madeAbsolute bool     // Location was a path
	failed       bool     // an error page has been chosen; another failure gets the built-in one
	added        bool     // whether content is added around that of the response has been decided
	slices       *slicing // that the upstream sends; nil: $slice_range was not used
	joined       bool     // whether the response is one of slices has been decided
	undecided    bool     // no response was made: the status of an error page was returned
	rootTested   bool     // a file was found below the root, or the alias

	within []*middleware // that the request is served inside, the innermost last

	namesRoom [32]string // memory for the names of the response's header, if they fit

	// The states of the modules.
	charset charsetState
	gzip    gzipState
	limits  limitState
	link    linkState
	proxy   proxyState
	rate    rateState
	realIP  realIPState
	ssi     ssiState
	sub     subState
	userid  useridState
}

// root returns the exchange that x serves a part of, and that has what such parts share: that of the client's request, or of a copy of it.
func (x *exchange) root() *exchange {
	for x.main != nil && !x.apart {
		x = x.main
	}
	return x
}

type exchangeKey struct{}

// exchangeContext carries an exchange. Both it and the request are parts of the exchange: one
// allocation for all that a request needs here.
type exchangeContext struct {
	context.Context
	x *exchange
}

// Value implements context.Context.
func (c *exchangeContext) Value(key any) any {
	if key == (exchangeKey{}) {
		return c.x
	}
	return c.Context.Value(key)
}

// exchangeOf returns the exchange that ctx carries.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// enter creates the exchange of a request and puts it into the context.
func (e *Engine) enter(k *socket, w http.ResponseWriter, r *http.Request) *exchange {
	ctx, result := filters.WithResult(r.Context())
	x := &exchange{engine: e, w: w}
	x.Start = time.Now()
	x.context = exchangeContext{ctx, x}
	x.request = *r.WithContext(&x.context)
	x.HTTP = &x.request
	x.HTTP.RemoteAddr = clientAddress(r)
	x.HTTPS = r.TLS != nil
	x.Conn = vars.ConnFrom(ctx)
	x.Conn.Requests.Add(1)
	x.Upstream = result
	x.Header = w.Header()
	x.RequestURI = requestTarget(x.HTTP)
	x.HeaderBytes, x.Pipelined = clientside.RequestHeader(w)
	x.Owner = x
	x.socket = k
	x.receive(r)
	return x
}

// requestTarget returns $request_uri: the target that the client sent, without the scheme and the
// host of an absolute form.
func requestTarget(r *http.Request) string {
	target := r.RequestURI
	if i := strings.Index(target, "://"); i > 0 && !strings.HasPrefix(target, "/") {
		target = target[i+3:]
		if i := strings.IndexAny(target, "/?#"); i >= 0 {
			target = target[i:]
		} else {
			target = "/"
		}
		if target[0] != '/' {
			target = "/" + target
		}
	}
	return target
}
