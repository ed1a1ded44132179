package engine

import (
	"net/http"

	"github.com/culvert-go/culvert"
)

// finish combines the directives of a level when all of them are compiled.
func (c *compiler) finish(l *level) error {
	if err := l.referers.verify(); err != nil {
		return err
	}
	l.finishSub()
	if err := l.finishGzip(); err != nil {
		return err
	}
	return c.finishMirror(l)
}

// filtered calls serve with a writer that applies the level's filters: sub_filter gets the
// content first, then gunzip or gzip.
func (x *exchange) filtered(w http.ResponseWriter, serve func(*exchange, http.ResponseWriter) int) (status int) {
	l := x.level
	if l.sub.made == nil && l.gzip.made == nil && !l.gunzip {
		return serve(x, w)
	}
	replaces := l.sub.filter()
	if x.replacing(l) {
		replaces = nil // an internal redirect has led here: the filter is in place already
	} else {
		x.replaced = append(x.replaced, l.sub.pairs)
		defer func() { x.replaced = x.replaced[:len(x.replaced)-1] }()
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if l.gzip.made != nil {
			w = &plainBytes{w, x}
		}
		status = serve(x, w)
	})
	for _, f := range []culvert.Filter{replaces, x.gunzipFilter(), l.gzip.filter()} {
		if f != nil {
			handler = f(handler)
		}
	}
	handler.ServeHTTP(w, x.HTTP)
	return status
}
