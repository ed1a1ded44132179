package filters

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
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
	return observe(func(*http.Request) {}, func(r *http.Request, o Observation) {
		ctx := r.Context()
		if !l.Enabled(ctx, slog.LevelInfo) {
			return
		}
		// Not by l.LogAttrs: it looks for the place in the code, which is always this one.
		record := slog.NewRecord(o.Start.Add(o.Duration), slog.LevelInfo, "request", 0)
		var space [16]slog.Attr
		record.AddAttrs(o.attrs(space[:0], r)...)
		_ = l.Handler().Handle(ctx, record) // as l does: there is nobody to tell
	})
}

// attrs appends what is logged of r.
func (o Observation) attrs(attrs []slog.Attr, r *http.Request) []slog.Attr {
	attrs = append(attrs,
		slog.String("client", clientHost(r)),
		slog.String("method", r.Method),
		slog.String("host", r.Host),
		slog.String("uri", r.RequestURI),
		slog.String("proto", r.Proto),
		slog.Int("status", o.Status),
		slog.Int64("bytes", o.Bytes),
		slog.Duration("duration", o.Duration),
	)
	if id := RequestIDFrom(r.Context()); id != "" {
		attrs = append(attrs, slog.String("id", id))
	}
	if o.Result.Upstream != "" || len(o.Result.Tries) > 0 {
		attrs = append(attrs, slog.String("upstream", o.Result.Upstream))
		attrs = append(attrs, triesAttrs(o.Result.Tries)...)
	}
	if o.Hijacked {
		attrs = append(attrs, slog.Int64("in_bytes", o.Result.BytesIn), slog.Int64("out_bytes", o.Result.BytesOut))
	}
	if o.Result.Err != nil {
		attrs = append(attrs, slog.String("error", o.Result.Err.Error()))
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
