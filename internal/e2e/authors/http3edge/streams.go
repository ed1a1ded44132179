package main

import (
	"context"
	"net/http"
	"strings"
)

// streams ends streams of events when the edge stops: they never end by themselves, and their clients connect again.
type streams struct {
	ctx context.Context
	end context.CancelFunc
}

func newStreams() *streams {
	ctx, end := context.WithCancel(context.Background())
	return &streams{ctx, end}
}

// filter is a filters.Filter.
func (s *streams) filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
