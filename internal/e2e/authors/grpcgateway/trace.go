package main

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/culvert-go/culvert"
)

// tracing makes a span of each attempt.
type tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// attempt is proxy.Options.OnAttempt.
func (t tracing) attempt(out *http.Request, target string) func(culvert.Attempt) {
	span := t.start(out.Context(), out, target)
	return func(a culvert.Attempt) { end(span, a.Status, a.Err) }
}

// start begins the span of an attempt, and gives its traceparent to the target.
func (t tracing) start(ctx context.Context, out *http.Request, target string) trace.Span {
	ctx, span := t.tracer.Start(ctx, "attempt "+out.URL.Path, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("rpc.system", "grpc"), attribute.String("server.address", target)))
	t.propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
	return span
}

func end(span trace.Span, status int, err error) {
	if status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
