package otel_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/examples/metrics/otel"
	"github.com/culvert-go/culvert/filters"
)

func TestMetrics(t *testing.T) {
	reader := sdk.NewManualReader()
	m, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("culvert"))
	if err != nil {
		t.Fatal(err)
	}
	h := filters.Observe(m)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record := filters.ResultFrom(r.Context())
		record.Upstream = "app"
		record.Attempts = append(record.Attempts, culvert.Attempt{Target: "a:1", Err: io.EOF}, culvert.Attempt{Target: "[::1]:80", Status: 418}, culvert.Attempt{Target: "unix:/a", Status: 418})
		w.WriteHeader(418)
		_, _ = io.WriteString(w, "teapot")
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/", nil))
	connect := httptest.NewRequest("CONNECT", "a:1", nil)
	connect.TLS = new(tls.ConnectionState)
	filters.Observe(m)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) })).ServeHTTP(httptest.NewRecorder(), connect)

	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, metric := range got.ScopeMetrics[0].Metrics {
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprint(metric.Name, " ", p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Value))
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprint(metric.Name, " ", p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Sum))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprint(metric.Name, " ", p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Count))
				if len(p.Bounds) != 14 || p.Bounds[0] != 0.005 || p.Bounds[13] != 10 {
					t.Errorf("the duration's boundaries are %v", p.Bounds)
				}
			}
		}
	}
	slices.Sort(lines)
	want := []string{
		"culvert.upstream.tries culvert.upstream=app,error=false,server.address=::1,server.port=80 1",
		"culvert.upstream.tries culvert.upstream=app,error=false,server.address=unix:/a 1",
		"culvert.upstream.tries culvert.upstream=app,error=true,server.address=a,server.port=1 1",
		"http.server.active_requests http.request.method=_OTHER,url.scheme=http 0",
		"http.server.active_requests http.request.method=CONNECT,url.scheme=https 0",
		"http.server.request.duration culvert.upstream=app,http.request.method=_OTHER,http.response.status_code=418,url.scheme=http 1",
		"http.server.request.duration culvert.upstream=,error.type=502,http.request.method=CONNECT,http.response.status_code=502,url.scheme=https 1",
		"http.server.response.body.size culvert.upstream=app,http.request.method=_OTHER,http.response.status_code=418,url.scheme=http 6",
		"http.server.response.body.size culvert.upstream=,error.type=502,http.request.method=CONNECT,http.response.status_code=502,url.scheme=https 0",
	}
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%q\nwant\n%q", lines, want)
	}
}

// Targets that requests name can't fill the memory.
func TestTargetsAreBounded(t *testing.T) {
	reader := sdk.NewManualReader()
	m, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(-1)).Meter("culvert"))
	if err != nil {
		t.Fatal(err)
	}
	h := filters.Observe(m)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		record := filters.ResultFrom(r.Context())
		record.Attempts = append(record.Attempts, culvert.Attempt{Target: r.Host + ":80"})
	}))
	for i := range 1500 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = fmt.Sprint(i % 1200)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	for _, metric := range got.ScopeMetrics[0].Metrics {
		if metric.Name != "culvert.upstream.tries" {
			continue
		}
		points := metric.Data.(metricdata.Sum[int64]).DataPoints
		others := int64(0)
		for _, p := range points {
			if address, _ := p.Attributes.Value("server.address"); address.AsString() == "_OTHER" {
				others = p.Value
			}
		}
		if len(points) != 1001 || others != 200 {
			t.Errorf("%d series, %d attempts at others", len(points), others)
		}
	}
}

// Metrics of each request, for a collector or any other reader of OpenTelemetry's SDK.
func Example() {
	provider := sdk.NewMeterProvider() // with a reader
	metrics, err := otel.New(provider.Meter("gateway"))
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", filters.NewChain(filters.Observe(metrics)).Then(http.NotFoundHandler()))
}
