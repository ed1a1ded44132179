package filters

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
)

// AccessLog returns a filter that logs one record "request" at level Info for
// each request when its response has ended, including aborted responses and tunnels.
// If l is nil, it logs to slog.Default().
//
// The attributes are client, method, host, uri, proto, status, bytes and duration.
// There are also id if RequestID is outside of the filter; user if one was authenticated inside of it; upstream, targets,
// target_statuses and header for proxied requests; in_bytes and out_bytes for tunnels;
// and error for failures. targets and target_statuses list the attempts in order, header is
// the time to the header of the last attempt's response. The status is 499, as in nginx,
// if the client has disconnected.
//
// Each function of more is called at the end of a request, concurrently with other requests, and returns further
// attributes: the user agent, an id of a trace, the kind of the failure. They are written behind those above, and a name
// that is used twice is written twice. What a client has sent is as long as MaxHeaderBytes of its server permits, and may
// have any characters: slog's own handlers escape them. A panic of a function is that of the handler. A nil function is
// not called.
func AccessLog(l *slog.Logger, more ...func(*http.Request, Observation) []slog.Attr) culvert.Filter {
	if l == nil {
		l = slog.Default()
	}
	return observe(func(*http.Request) {}, func(r *http.Request, o Observation) {
		ctx := r.Context()
		if !l.Enabled(ctx, slog.LevelInfo) {
			return
		}
		// Not by l.LogAttrs: it looks up the caller in the source, which is always this line.
		record := slog.NewRecord(o.Start.Add(o.Duration), slog.LevelInfo, "request", 0)
		var space [16]slog.Attr
		record.AddAttrs(o.attrs(space[:0], r)...)
		for _, attrs := range more {
			if attrs != nil {
				record.AddAttrs(attrs(r, o)...)
			}
		}
		_ = l.Handler().Handle(ctx, record) // a Logger ignores the error too
	})
}

// attrs appends the attributes of r's record to attrs.
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
	if o.Result.User != "" {
		attrs = append(attrs, slog.String("user", o.Result.User))
	}
	if o.Result.Upstream != "" || len(o.Result.Attempts) > 0 {
		attrs = append(attrs, slog.String("upstream", o.Result.Upstream))
		attrs = append(attrs, attemptAttrs(o.Result.Attempts)...)
	}
	if o.Hijacked {
		attrs = append(attrs, slog.Int64("in_bytes", o.Result.BytesIn), slog.Int64("out_bytes", o.Result.BytesOut))
	}
	if o.Result.Err != nil {
		attrs = append(attrs, slog.String("error", o.Result.Err.Error()))
	}
	return attrs
}

// attemptAttrs returns the attributes with the target and the status of each attempt. The status is 0 for
// an attempt without a response.
func attemptAttrs(attempts []culvert.Attempt) []slog.Attr {
	targets, statuses := make([]string, len(attempts)), make([]string, len(attempts))
	var header time.Duration
	for i, t := range attempts {
		targets[i], statuses[i] = t.Target, strconv.Itoa(t.Status)
		header = t.TimeToHeader
	}
	return []slog.Attr{
		slog.String("targets", strings.Join(targets, ", ")),
		slog.String("target_statuses", strings.Join(statuses, ", ")),
		slog.Duration("header", header),
	}
}
