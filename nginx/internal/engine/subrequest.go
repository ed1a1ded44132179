package engine

import (
	"context"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/filters"
)

// subrequest runs a GET of another path of this server with x's fields, and returns it
// when it is answered: its Status, its Header and its upstream's variables. The content
// is dropped. Access rules and logs are for x alone (ngx_http_subrequest).
func (x *exchange) subrequest(target string) *exchange {
	sub := x.branch(x.HTTP.Context(), target)
	sub.HTTP = withoutBody(sub.HTTP)
	sub.HTTP.Method = http.MethodGet
	sub.answer()
	return sub
}

// branch makes an exchange beside x whose answer nobody gets.
func (x *exchange) branch(ctx context.Context, target string) *exchange {
	sub := &exchange{Request: x.Branch(), engine: x.engine, server: x.server, level: x.server.level, main: x}
	sub.URI, sub.Args, _ = strings.Cut(target, "?")
	sub.Internal, sub.uriChanged = true, true
	w := &answerless{header: http.Header{}, x: sub}
	sub.w, sub.Header = w, w.header
	sub.Location = sub
	ctx, sub.Upstream = filters.WithNewResult(ctx)
	sub.HTTP = x.HTTP.Clone(context.WithValue(ctx, exchangeKey{}, sub))
	for _, name := range []string{"Upgrade", "Connection", "Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"} {
		sub.HTTP.Header.Del(name) // about x's content and its connection
	}
	return sub
}

// answer runs the subrequest. An upstream that breaks off behind its head has answered.
func (x *exchange) answer() {
	defer func() {
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			panic(e)
		}
		for _, end := range x.atEnd {
			end()
		}
	}()
	status := x.process(x.w)
	for status != 0 {
		status = x.special(status)
	}
}

// answerless is the ResponseWriter of a subrequest.
type answerless struct {
	header http.Header
	x      *exchange
}

func (w *answerless) Header() http.Header { return w.header }

func (w *answerless) WriteHeader(status int) {
	if w.x.Status == 0 && status >= 200 {
		w.x.Status = status
	}
}

func (w *answerless) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(p), nil
}
