package engine

import (
	"context"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/clientside"
	httpheader "github.com/culvert-go/culvert/internal/header"
)

// subrequest runs a GET of another path of this server with x's header fields. It returns the
// finished exchange: its Status, its Header and its upstream's variables. The content is
// discarded. Access rules and logs apply to x only (ngx_http_subrequest).
func (x *exchange) subrequest(target string) *exchange {
	sub := x.branch(x.HTTP.Context(), target)
	sub.HTTP = withoutBody(sub.HTTP)
	sub.HTTP.Method = http.MethodGet
	sub.serveSubrequest()
	return sub
}

// branch creates an exchange beside x whose response is discarded. It may outlive x, and its writer hides x's.
func (x *exchange) branch(ctx context.Context, target string) *exchange {
	clientside.Hold(x.w)
	sub := &exchange{Request: x.Branch(), engine: x.engine, server: x.server, level: x.server.level, main: x}
	sub.URI, sub.Args, _ = strings.Cut(target, "?")
	sub.Internal, sub.uriChanged = true, true
	w := &discardWriter{header: http.Header{}, x: sub}
	sub.w, sub.Header = w, w.header
	sub.Owner = sub
	sub.link, sub.limits, sub.realIP = x.link, limitState{req: x.limits.req, conn: x.limits.conn}, x.realIP
	sub.link.until = ""
	ctx, sub.Upstream = filters.WithNewResult(ctx)
	sub.HTTP = x.HTTP.Clone(context.WithValue(ctx, exchangeKey{}, sub))
	sub.HTTP.Header.Del("Upgrade")
	sub.HTTP.Header.Del("Connection")
	httpheader.RemoveConditions(sub.HTTP.Header)
	return sub
}

// serveSubrequest runs the subrequest. An upstream's response that breaks off after its header
// counts as a response.
func (x *exchange) serveSubrequest() {
	defer x.releaseBody()
	defer func() {
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			panic(e)
		}
	}()
	status := x.process(x.w)
	for status != 0 {
		status = x.special(status)
	}
}

// discardWriter is the ResponseWriter of a subrequest.
type discardWriter struct {
	header http.Header
	x      *exchange
}

func (w *discardWriter) Header() http.Header { return w.header }

func (w *discardWriter) WriteHeader(status int) {
	if w.x.Status == 0 && status >= 200 {
		w.x.Status = status
	}
}

// Discards ends the exchange with an upstream at its header, as header_only does in nginx.
func (w *discardWriter) Discards() bool { return true }

func (w *discardWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(p), nil
}
