package engine

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// maxRedirects bounds the internal redirects of a request, as nginx does
// (NGX_HTTP_MAX_URI_CHANGES).
const maxRedirects = 10

// exchange is one request on its way through the configuration.
type exchange struct {
	vars.Request
	engine  *Engine
	socket  *socket
	server  *server
	level   *level // the one that counts now
	context exchangeContext
	request http.Request        // what HTTP is at first
	w       http.ResponseWriter // the client's

	errStatus    int         // the status that an error page is sent with, 0 for its own
	redirects    int         // internal redirects and changes of the path so far
	elsewhere    bool        // the path was changed inside its location, of which it need not be any more
	uriChanged   bool        // path and query are not those that the client has sent any more
	failed       bool        // an error page has been chosen; another failure gets the built-in one
	rootTested   bool        // a file was found below the root, or the alias
	proxyURI     string      // of a proxy_pass with variables
	proxied      bool        // the answer is an upstream's
	proxyFailure error       // why there is none
	rateSet      bool        // LimitRate is the rate that counts
	bodyRead     bool        // ahead, for $request_body
	compressible bool        // gzip is for this answer
	newUserID    []byte      // that userid gives
	atEnd        []func()    // called when the answer has ended
	main         *exchange   // of a subrequest, nil for a client's
	diverted     *diversion  // what answers in its place
	replaced     [][]subPair // what is replaced in the answer on its way
}

type exchangeKey struct{}

// exchangeContext carries an exchange. It is a part of it, as the request is: one piece of memory
// for all that a request needs here.
type exchangeContext struct {
	context.Context
	x *exchange
}

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

// enter makes the exchange of a request and puts it into the context.
func (e *Engine) enter(k *socket, w http.ResponseWriter, r *http.Request) *exchange {
	ctx, result := filters.WithResult(r.Context())
	x := &exchange{engine: e, w: w}
	x.Start = time.Now()
	x.context = exchangeContext{ctx, x}
	x.request = *r.WithContext(&x.context)
	x.HTTP = &x.request
	x.HTTP.RemoteAddr = clientAddress(r)
	x.Line = r.Method + " " + r.RequestURI + " " + r.Proto
	x.HTTPS = r.TLS != nil
	x.Conn = vars.ConnFrom(ctx)
	x.Conn.Requests.Add(1)
	x.Upstream = result
	x.Header = w.Header()
	x.RequestURI = requestTarget(r)
	x.Location = x
	x.Host = hostName(r.Host)
	x.socket = k
	s, groups, re := k.host(localIP(r)).choose(x.Host)
	if re != nil {
		x.Capture(groups, re.SubexpNames())
	}
	x.server, x.level, x.ServerName = s, s.level, s.firstName()
	if x.Host == "" {
		x.Host = x.ServerName
	}
	x.setRealIP(&s.level.realIP)
	return x
}

// requestTarget is $request_uri: what the client sent, without the scheme and
// the host of an absolute form.
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

// split sets URI and Args from the target; false if the path is malformed.
func (x *exchange) split() bool {
	path, args := route.Split(x.RequestURI)
	uri, err := route.Normalize(path, x.server.level.mergeSlashes)
	if err != nil {
		return false
	}
	x.URI, x.Args = uri, args
	return true
}

// bySNI is the server that the client's TLS has named.
func (x *exchange) bySNI() *server {
	s, _, _ := x.socket.host(localIP(x.HTTP)).choose(hostName(x.HTTP.TLS.ServerName))
	return s
}
