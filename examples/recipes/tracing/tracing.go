// Package tracing makes a span of each request and of each attempt, with OpenTelemetry.
package tracing

import (
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Gateway returns a handler whose targets receive the traceparent of their attempt. The span of the request continues the
// trace of the client.
func Gateway(app *upstream.Group, provider trace.TracerProvider) (http.Handler, error) {
	propagator := propagation.TraceContext{}
	handler, err := proxy.New(proxy.Options{Upstream: app, OnAttempt: attempts(provider.Tracer("gateway"), propagator)})
	if err != nil {
		return nil, err
	}
	requests := otelhttp.NewMiddleware("gateway",
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagator))
	return filters.NewChain(requests).Then(handler), nil
}

// attempts returns a hook with a client's span for each attempt.
func attempts(tracer trace.Tracer, propagator propagation.TextMapPropagator) func(*http.Request, string) func(culvert.Attempt) {
	return func(out *http.Request, target string) func(culvert.Attempt) {
		host, text, _ := net.SplitHostPort(target)
		port, _ := strconv.Atoi(text)
		ctx, span := tracer.Start(out.Context(), out.Method, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("http.request.method", out.Method), attribute.String("url.full", out.URL.String()),
				attribute.String("server.address", host), attribute.Int("server.port", port)))
		propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
		return func(a culvert.Attempt) {
			if a.Status != 0 {
				span.SetAttributes(attribute.Int("http.response.status_code", a.Status))
			}
			if a.Err != nil {
				span.SetStatus(codes.Error, a.Err.Error())
			}
			span.End()
		}
	}
}
