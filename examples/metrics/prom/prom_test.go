package prom_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/examples/metrics/prom"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

func TestMetrics(t *testing.T) {
	dead, live := wiretest.Unused(t), wiretest.Serve(t, http.NotFoundHandler())
	group, err := upstream.New(upstream.Options{Name: "app", Balance: upstream.First()}, upstream.Target{Addr: dead}, upstream.Target{Addr: live})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	p, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	m, err := prom.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	registry.MustRegister(prom.Groups{group})
	filters.Observe(m)(p).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("MADEUP", "/", nil))
	want := strings.NewReplacer("DEAD", dead, "LIVE", live).Replace(`
# HELP http_server_active_requests Requests and tunnels that run.
# TYPE http_server_active_requests gauge
http_server_active_requests{http_request_method="_OTHER",url_scheme="http"} 0
# HELP culvert_upstream_target_healthy Whether a target may receive requests.
# TYPE culvert_upstream_target_healthy gauge
culvert_upstream_target_healthy{target="DEAD",upstream="app"} 0
culvert_upstream_target_healthy{target="LIVE",upstream="app"} 1
# HELP culvert_upstream_tries_total Attempts to send a request to a target, by result.
# TYPE culvert_upstream_tries_total counter
culvert_upstream_tries_total{result="4xx",target="LIVE",upstream="app"} 1
culvert_upstream_tries_total{result="error",target="DEAD",upstream="app"} 1
`)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "http_server_active_requests", "culvert_upstream_target_healthy", "culvert_upstream_tries_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range families {
		if f.GetName() != "http_server_request_duration_seconds" && f.GetName() != "http_server_response_body_size_bytes" {
			continue
		}
		seen++
		labels := map[string]string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if n := f.GetMetric()[0].GetHistogram().GetSampleCount(); n != 1 || labels["http_request_method"] != "_OTHER" || labels["url_scheme"] != "http" || labels["http_response_status_code"] != "404" || labels["culvert_upstream"] != "app" {
			t.Errorf("%d requests of %v", n, labels)
		}
	}
	if seen != 2 {
		t.Errorf("%d histograms", seen)
	}
	if _, err := prom.New(registry); err == nil {
		t.Error("registered twice")
	}
}

// Targets that requests name can't fill the memory.
func TestTargetsAreBounded(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := prom.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	h := filters.Observe(m)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		record := filters.ResultFrom(r.Context())
		record.Attempts = append(record.Attempts, culvert.Attempt{Target: r.Host, Status: 200})
	}))
	for i := range 1500 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = fmt.Sprint(i % 1200)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n, err := testutil.GatherAndCount(registry, "culvert_upstream_tries_total"); n != 1001 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}

// Metrics of each request, and of the targets of a group.
func Example() {
	group, err := upstream.New(upstream.Options{Name: "app"}, upstream.Target{Addr: "127.0.0.1:9001"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		log.Fatal(err)
	}
	metrics, err := prom.New(prometheus.DefaultRegisterer)
	if err != nil {
		log.Fatal(err)
	}
	prometheus.MustRegister(prom.Groups{group})
	http.Handle("/", filters.NewChain(filters.Observe(metrics)).Then(handler))
}
