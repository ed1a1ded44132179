// Package otel records requests with OpenTelemetry, by the names of its semantic conventions for
// HTTP servers.
package otel

import (
	"net"
	"net/http"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/culvert-go/culvert/filters"
)

// Metrics is a filters.Metrics for OpenTelemetry. It counts the attempts at 1000 targets apart, and those at others, which
// requests can name with an upstream.Dynamic, together as _OTHER.
type Metrics struct {
	active   metric.Int64UpDownCounter
	duration metric.Float64Histogram
	size     metric.Int64Histogram
	tries    metric.Int64Counter

	mu      sync.Mutex
	targets map[string]struct{}
}

// maxTargets bounds the series of targets.
const maxTargets = 1000

// boundaries are those of the conventions, in seconds. The SDK's own are for milliseconds.
var boundaries = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// New creates the instruments.
func New(m metric.Meter) (*Metrics, error) {
	active, err := m.Int64UpDownCounter("http.server.active_requests", metric.WithUnit("{request}"))
	if err != nil {
		return nil, err
	}
	duration, err := m.Float64Histogram("http.server.request.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(boundaries...))
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
	return &Metrics{active: active, duration: duration, size: size, tries: tries, targets: map[string]struct{}{}}, nil
}

// RequestStarted counts an active request.
func (m *Metrics) RequestStarted(r *http.Request) {
	m.active.Add(r.Context(), 1, metric.WithAttributes(method(r), scheme(r)))
}

// RequestEnded records a request.
func (m *Metrics) RequestEnded(r *http.Request, o filters.Observation) {
	ctx := r.Context()
	m.active.Add(ctx, -1, metric.WithAttributes(method(r), scheme(r)))
	attributes := []attribute.KeyValue{method(r), scheme(r), attribute.Int("http.response.status_code", o.Status), attribute.String("culvert.upstream", o.Result.Upstream)}
	if o.Status >= 500 {
		attributes = append(attributes, attribute.String("error.type", strconv.Itoa(o.Status)))
	}
	set := metric.WithAttributes(attributes...)
	m.duration.Record(ctx, o.Duration.Seconds(), set)
	m.size.Record(ctx, o.Bytes, set)
	for _, t := range o.Result.Attempts {
		m.tries.Add(ctx, 1, metric.WithAttributes(append(m.target(t.Target),
			attribute.String("culvert.upstream", o.Result.Upstream), attribute.Bool("error", t.Err != nil))...))
	}
}

// target returns the attributes of a target's address: host and port, or the path of a unix socket.
func (m *Metrics) target(addr string) []attribute.KeyValue {
	const address = attribute.Key("server.address")
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.targets[addr]; !known && len(m.targets) >= maxTargets {
		return []attribute.KeyValue{address.String("_OTHER")}
	}
	m.targets[addr] = struct{}{}
	host, text, err := net.SplitHostPort(addr)
	port, atoi := strconv.Atoi(text)
	if err != nil || atoi != nil {
		return []attribute.KeyValue{address.String(addr)}
	}
	return []attribute.KeyValue{address.String(host), attribute.Int("server.port", port)}
}

// method bounds the attribute as the conventions require: an unknown method is _OTHER. Known are those of RFC 9110, and
// PATCH.
func method(r *http.Request) attribute.KeyValue {
	const key = attribute.Key("http.request.method")
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		http.MethodConnect, http.MethodTrace:
		return key.String(r.Method)
	}
	return key.String("_OTHER")
}

func scheme(r *http.Request) attribute.KeyValue {
	const key = attribute.Key("url.scheme")
	if r.TLS != nil {
		return key.String("https")
	}
	return key.String("http")
}
