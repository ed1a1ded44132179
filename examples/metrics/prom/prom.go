// Package prom exports metrics of requests and of upstream groups to Prometheus. Those of requests have the names of
// OpenTelemetry's semantic conventions for HTTP servers, as its exporters write them.
package prom

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/upstream"
)

// Metrics is a filters.Metrics for Prometheus. It counts the attempts at 1000 targets apart, and those at others, which
// requests can name with an upstream.Dynamic, together as _OTHER.
type Metrics struct {
	inFlight *prometheus.GaugeVec
	duration *prometheus.HistogramVec
	size     *prometheus.HistogramVec
	tries    *prometheus.CounterVec

	mu      sync.Mutex
	targets map[string]struct{}
}

// maxTargets bounds the series of targets.
const maxTargets = 1000

// New registers the metrics. The labels are few on purpose: paths and client addresses would
// create a series each.
func New(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "http_server_active_requests", Help: "Requests and tunnels that run."},
			[]string{"http_request_method", "url_scheme"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_server_request_duration_seconds", Help: "Time from a request's header to the end of its response.", Buckets: prometheus.DefBuckets,
		}, []string{"http_request_method", "url_scheme", "http_response_status_code", "culvert_upstream"}),
		size: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_server_response_body_size_bytes", Help: "Content sent to clients.", Buckets: prometheus.ExponentialBuckets(256, 8, 8),
		}, []string{"http_request_method", "url_scheme", "http_response_status_code", "culvert_upstream"}),
		tries:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "culvert_upstream_tries_total", Help: "Attempts to send a request to a target, by result."}, []string{"upstream", "target", "result"}),
		targets: map[string]struct{}{},
	}
	for _, c := range []prometheus.Collector{m.inFlight, m.duration, m.size, m.tries} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// RequestStarted counts a request in flight.
func (m *Metrics) RequestStarted(r *http.Request) {
	m.inFlight.WithLabelValues(method(r.Method), scheme(r)).Inc()
}

// RequestEnded observes a request.
func (m *Metrics) RequestEnded(r *http.Request, o filters.Observation) {
	m.inFlight.WithLabelValues(method(r.Method), scheme(r)).Dec()
	labels := []string{method(r.Method), scheme(r), strconv.Itoa(o.Status), o.Result.Upstream}
	m.duration.WithLabelValues(labels...).Observe(o.Duration.Seconds())
	m.size.WithLabelValues(labels...).Observe(float64(o.Bytes))
	for _, t := range o.Result.Attempts {
		result := strconv.Itoa(t.Status/100) + "xx"
		if t.Err != nil {
			result = "error"
		}
		m.tries.WithLabelValues(o.Result.Upstream, m.target(t.Target), result).Inc()
	}
}

// target returns the label of a target.
func (m *Metrics) target(addr string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.targets[addr]; !known && len(m.targets) >= maxTargets {
		return "_OTHER"
	}
	m.targets[addr] = struct{}{}
	return addr
}

// method bounds the label: a client can invent methods. Those of RFC 9110, and PATCH, are known, as the conventions say.
func method(s string) string {
	switch s {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		http.MethodConnect, http.MethodTrace:
		return s
	}
	return "_OTHER"
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// Groups is a prometheus.Collector of the state of groups' targets.
type Groups []*upstream.Group

var (
	healthy = prometheus.NewDesc("culvert_upstream_target_healthy", "Whether a target may receive requests.", []string{"upstream", "target"}, nil)
	busy    = prometheus.NewDesc("culvert_upstream_target_in_flight", "Requests and tunnels that a target has.", []string{"upstream", "target"}, nil)
	waiting = prometheus.NewDesc("culvert_upstream_waiting", "Requests that wait for a target.", []string{"upstream"}, nil)
)

// Describe sends the descriptions.
func (g Groups) Describe(c chan<- *prometheus.Desc) {
	c <- healthy
	c <- busy
	c <- waiting
}

// Collect sends the current values.
func (g Groups) Collect(c chan<- prometheus.Metric) {
	for _, group := range g {
		for s := range group.Targets() {
			up := 0.0
			if s.Healthy {
				up = 1
			}
			c <- prometheus.MustNewConstMetric(healthy, prometheus.GaugeValue, up, group.Name(), s.Target.Addr)
			c <- prometheus.MustNewConstMetric(busy, prometheus.GaugeValue, float64(s.InFlight), group.Name(), s.Target.Addr)
		}
		c <- prometheus.MustNewConstMetric(waiting, prometheus.GaugeValue, float64(group.Waiting()), group.Name())
	}
}
