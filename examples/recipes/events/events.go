// Package events relays server-sent events: each is received by the client when the target has sent it.
package events

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// Gateway returns a handler. It needs no setting for streams: what a target sends is flushed when the target pauses, through
// Compress as well, and neither Timeout nor BodyTimeout bounds a stream unless it is set.
func Gateway(app *upstream.Group) (http.Handler, error) {
	handler, err := proxy.New(proxy.Options{Upstream: app})
	if err != nil {
		return nil, err
	}
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		return nil, err
	}
	return filters.NewChain(compress).Then(handler), nil
}

// Serve serves until ctx ends. Streams never end by themselves, so it ends them: their clients connect again, to the next
// process, with Last-Event-ID. Other requests, uploads for instance, have ten seconds to end.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	streams, end := context.WithCancel(context.Background())
	defer end()
	s := &server.Server{
		Handler:           endWith(streams, handler),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute, // and no WriteTimeout, which ends every longer stream
	}
	s.RegisterOnShutdown(end)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.Shutdown(bounded)
}

// endWith ends the requests for streams of events when a context ends. EventSource names the media type in Accept.
func endWith(streams context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(streams, cancel)()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}
