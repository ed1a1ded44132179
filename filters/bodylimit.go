package filters

import (
	"errors"
	"net/http"
	"time"
)

// BodyLimit returns a filter that bounds the body of each request to max bytes. One
// that announces more is answered with 413 at once; one that turns out to be longer
// fails to be read with an *http.MaxBytesError, which package proxy answers with 413.
// What is sent behind a CONNECT is a tunnel's, and is not bounded.
func BodyLimit(max int64) (Filter, error) {
	if max < 0 {
		return nil, errors.New("filters: BodyLimit is negative")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > max {
				// It is not read, and net/http would wait for it to come.
				if r.ProtoMajor == 1 { // for HTTP/2 it would end all streams of the connection
					w.Header().Set("Connection", "close")
				}
				_ = http.NewResponseController(w).SetReadDeadline(time.Now())
				writeRefusal(w, r, http.StatusRequestEntityTooLarge)
				return
			}
			if r.ContentLength < 0 && r.Body != nil && r.Method != http.MethodConnect {
				limited := *r
				limited.Body = http.MaxBytesReader(w, r.Body, max)
				r = &limited
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}
