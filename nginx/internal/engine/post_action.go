package engine

import (
	"context"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
)

// postActionModule makes a request of another location when a response has ended (ngx_http_post_action), on a goroutine of its own: the
// client does not wait for it, as it must not in nginx.
var postActionModule = module{
	directives: []directive{
		{name: "post_action", compile: postAction},
	},
	active: func(l *level) bool { return *postActionSlot.of(l) != nil },
	hooks:  hooks{log: actAfter},
}

var postActionSlot = newSlot[*filters.Mirror](nil)

// maxActions bounds the requests of one post_action that run at a time. One beyond that is not made.
const maxActions = 1024

// postAction compiles "post_action uri|@name|off".
func postAction(c *compiler, l *level, d *conf.Directive) error {
	made, target := postActionSlot.edit(l), d.Args[0]
	if *made = nil; target == "off" {
		return nil
	}
	m, err := filters.NewMirror(filters.MirrorOptions{
		MaxInFlight: maxActions,
		Upgrades:    true, // no client decides that there is none
		Context: func(ctx context.Context, r *http.Request) context.Context {
			return exchangeOf(r.Context()).action(ctx, target).HTTP.Context()
		},
		To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			exchangeOf(r.Context()).serveCopy(r)
		}),
	})
	if err != nil {
		return d.Errorf("%s", err)
	}
	*made = m
	c.engine.mirrors = append(c.engine.mirrors, m)
	return nil
}

// action creates the exchange of a post_action. Its variables show the response that has ended, until it has one of its own.
func (x *exchange) action(ctx context.Context, target string) *exchange {
	sub := x.branch(ctx, target)
	if strings.HasPrefix(target, "@") {
		sub.URI, sub.Args, sub.entry = x.URI, x.Args, target
	} else {
		sub.URI, sub.Args = target, "" // as in nginx a "?" in it begins no query
	}
	sub.Status, sub.BodyBytes = x.Status, x.BodyBytes
	return sub
}

// actAfter starts the post_action of the level that x has ended in.
func actAfter(x *exchange) {
	(*postActionSlot.of(x.level)).Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(nil, withoutBody(x.HTTP))
}
