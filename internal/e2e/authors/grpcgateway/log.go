package main

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/culvert-go/culvert/filters"
)

// statusKey is that of a call's status in a context.
type statusKey struct{}

// recordStatus finds out the grpc-status of each call for the log: it is in the trailers, or in the header of a response
// without messages.
func recordStatus(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := func() string {
			for _, name := range []string{http.TrailerPrefix + "Grpc-Status", "Grpc-Status"} {
				if value := w.Header().Get(name); value != "" {
					return value
				}
			}
			return ""
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), statusKey{}, status)))
	})
}

// attributes are those of the log that only gRPC has.
func attributes(r *http.Request, _ filters.Observation) []slog.Attr {
	var attrs []slog.Attr
	if status, ok := r.Context().Value(statusKey{}).(func() string); ok {
		attrs = append(attrs, slog.String("grpc_status", status()))
	}
	if span := trace.SpanContextFromContext(r.Context()); span.IsValid() {
		attrs = append(attrs, slog.String("trace_id", span.TraceID().String()))
	}
	return attrs
}
