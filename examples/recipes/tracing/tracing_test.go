package tracing_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/culvert-go/culvert/examples/recipes/tracing"
	"github.com/culvert-go/culvert/filters/filtertest"
	"github.com/culvert-go/culvert/upstream"
)

func TestSpans(t *testing.T) {
	var received string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer target.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	app, err := upstream.New(upstream.Options{Balance: upstream.First()},
		upstream.Target{Addr: gone.Listener.Addr().String()}, upstream.Target{Addr: target.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	spans := tracetest.NewSpanRecorder()
	h, err := tracing.Gateway(app, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	if err != nil {
		t.Fatal(err)
	}
	r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent {
		t.Fatalf("status %d", w.Code)
	}

	ended := spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d spans", len(ended))
	}
	failed, second, request := ended[0], ended[1], ended[2]
	if request.SpanKind() != trace.SpanKindServer || request.Parent().SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("the request's span is %v of %v", request.SpanKind(), request.Parent().SpanID())
	}
	for _, attempt := range ended[:2] {
		if attempt.SpanKind() != trace.SpanKindClient || attempt.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("an attempt's span is %v of %v", attempt.SpanKind(), attempt.Parent().SpanID())
		}
	}
	host, port, _ := net.SplitHostPort(target.Listener.Addr().String())
	attributes := attribute.NewSet(second.Attributes()...)
	for name, want := range map[attribute.Key]string{"server.address": host, "server.port": port, "url.full": "http://" + host + ":" + port + "/", "http.request.method": "GET"} {
		if got, _ := attributes.Value(name); got.String() != want {
			t.Errorf("%s is %s, want %s", name, got.String(), want)
		}
	}
	if failed.Status().Code != codes.Error || second.Status().Code != codes.Unset {
		t.Errorf("the attempts' statuses are %v and %v", failed.Status(), second.Status())
	}
	if want := "00-4bf92f3577b34da6a3ce929d0e0e4736-" + second.SpanContext().SpanID().String(); !strings.HasPrefix(received, want) {
		t.Errorf("the target received %q, want %q", received, want)
	}
}

// otelhttp keeps what proxying needs.
func TestKeepsProxying(t *testing.T) {
	filtertest.Test(t, otelhttp.NewMiddleware("gateway"))
}
