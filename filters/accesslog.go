package filters

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/response"
)

// AccessLog returns a filter that logs one record "request" at level Info for
// each request when its answer has ended, aborted answers and tunnels included. nil
// means slog.Default().
//
// The attributes are client, method, host, uri, proto, status, bytes and
// duration; for proxied requests upstream and targets as well, in_bytes and
// out_bytes for tunnels, error for failures. A client that left is logged with
// status 499, as nginx does.
func AccessLog(l *slog.Logger) Filter {
	if l == nil {
		l = slog.Default()
	}
	return logAtEnd(func(r *http.Request, e logEntry) {
		l.LogAttrs(r.Context(), slog.LevelInfo, "request", e.attrs(r)...)
	})
}

// logEntry is what is known of a request when it has ended.
type logEntry struct {
	response.Stats
	status   int
	start    time.Time
	duration time.Duration
	result   *Result
}

// logAtEnd is the common part of the access logs: it asks for the proxy's record
// and hands everything over at the end.
func logAtEnd(write func(*http.Request, logEntry)) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			ctx, record := WithResult(r.Context())
			r = r.WithContext(ctx)
			response.Serve(next, w, r, response.Hooks{End: func(s response.Stats) {
				write(r, logEntry{s, loggedStatus(s, record), start, time.Since(start), record})
			}})
		})
	}
}

// loggedStatus is the status of the answer, or of the failure where none was
// sent.
func loggedStatus(s response.Stats, record *Result) int {
	failure := fault.As(record.Err)
	switch {
	case failure != nil && failure.Kind == fault.ClientGone:
		return failure.Status()
	case s.Status != 0:
		return s.Status
	case failure != nil:
		return failure.Status()
	}
	return http.StatusInternalServerError // a panic without an answer
}

func (e logEntry) attrs(r *http.Request) []slog.Attr {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("client", clientHost(r)),
		slog.String("method", r.Method),
		slog.String("host", r.Host),
		slog.String("uri", r.RequestURI),
		slog.String("proto", r.Proto),
		slog.Int("status", e.status),
		slog.Int64("bytes", e.Bytes),
		slog.Duration("duration", e.duration),
	)
	if e.result.Upstream != "" || len(e.result.Tries) > 0 {
		attrs = append(attrs, slog.String("upstream", e.result.Upstream), slog.String("targets", targets(e.result)))
	}
	if e.Hijacked {
		attrs = append(attrs, slog.Int64("in_bytes", e.result.BytesIn), slog.Int64("out_bytes", e.result.BytesOut))
	}
	if e.result.Err != nil {
		attrs = append(attrs, slog.String("error", e.result.Err.Error()))
	}
	return attrs
}

// targets lists the targets in the order in which they were asked.
func targets(r *Result) string {
	list := make([]string, len(r.Tries))
	for i, t := range r.Tries {
		list[i] = t.Target
	}
	return strings.Join(list, ", ")
}
