package filters

import (
	"log/slog"
	"net/http"
	"strconv"
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
// duration; id if RequestID stands before it; for proxied requests upstream, the
// targets that were asked with their statuses, and header, the time to the last
// one's head; in_bytes and out_bytes for tunnels, error for failures. A client that
// left is logged with status 499, as nginx does.
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
	attrs := make([]slog.Attr, 0, 16)
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
	if id := RequestIDFrom(r.Context()); id != "" {
		attrs = append(attrs, slog.String("id", id))
	}
	if e.result.Upstream != "" || len(e.result.Tries) > 0 {
		attrs = append(attrs, slog.String("upstream", e.result.Upstream))
		attrs = append(attrs, triesAttrs(e.result.Tries)...)
	}
	if e.Hijacked {
		attrs = append(attrs, slog.Int64("in_bytes", e.result.BytesIn), slog.Int64("out_bytes", e.result.BytesOut))
	}
	if e.result.Err != nil {
		attrs = append(attrs, slog.String("error", e.result.Err.Error()))
	}
	return attrs
}

// triesAttrs tell who was asked, in order, and how each has answered; 0 is no answer.
func triesAttrs(tries []Try) []slog.Attr {
	targets, statuses := make([]string, len(tries)), make([]string, len(tries))
	var header time.Duration
	for i, t := range tries {
		targets[i], statuses[i] = t.Target, strconv.Itoa(t.Status)
		header = t.Header
	}
	return []slog.Attr{
		slog.String("targets", strings.Join(targets, ", ")),
		slog.String("target_statuses", strings.Join(statuses, ", ")),
		slog.Duration("header", header),
	}
}
