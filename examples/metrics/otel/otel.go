// Package otel records requests with OpenTelemetry, by the names of its semantic conventions for
// HTTP servers.
package otel

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/culvert-go/culvert/filters"
)

// Metrics is a filters.Metrics for OpenTelemetry.
type Metrics struct {
	active   metric.Int64UpDownCounter
	duration metric.Float64Histogram
	size     metric.Int64Histogram
	tries    metric.Int64Counter
}

// New creates the instruments.
func New(m metric.Meter) (*Metrics, error) {
	active, err := m.Int64UpDownCounter("http.server.active_requests", metric.WithUnit("{request}"))
	if err != nil {
		return nil, err
	}
	duration, err := m.Float64Histogram("http.server.request.duration", metric.WithUnit("s"))
	if err != nil {
		return nil, err
	}
	size, err := m.Int64Histogram("http.server.response.body.size", metric.WithUnit("By"))
	if err != nil {
		return nil, err
	}
	tries, err := m.Int64Counter("culvert.upstream.tries", metric.WithUnit("{try}"), metric.WithDescription("Attempts to send a request to a target."))
	if err != nil {
		return nil, err
	}
	return &Metrics{active, duration, size, tries}, nil
}

// RequestStarted counts an active request.
func (m *Metrics) RequestStarted(r *http.Request) {
	m.active.Add(r.Context(), 1, metric.WithAttributes(method(r)))
}

// RequestEnded records a request.
func (m *Metrics) RequestEnded(r *http.Request, o filters.Observation) {
	ctx := r.Context()
	m.active.Add(ctx, -1, metric.WithAttributes(method(r)))
	set := metric.WithAttributes(method(r), attribute.Int("http.response.status_code", o.Status), attribute.String("culvert.upstream", o.Result.Upstream))
	m.duration.Record(ctx, o.Duration.Seconds(), set)
	m.size.Record(ctx, o.Bytes, set)
	for _, t := range o.Result.Attempts {
		m.tries.Add(ctx, 1, metric.WithAttributes(attribute.String("culvert.upstream", o.Result.Upstream),
			attribute.String("server.address", t.Target), attribute.Bool("error", t.Err != nil)))
	}
}

// method bounds the attribute as the conventions require: an unknown method is _OTHER.
func method(r *http.Request) attribute.KeyValue {
	const key = attribute.Key("http.request.method")
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return key.String(r.Method)
	}
	return key.String("_OTHER")
}
