package otel_test

import (
	"fmt"
	"io"
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
		record.Attempts = append(record.Attempts, culvert.Attempt{Target: "a:1", Err: io.EOF}, culvert.Attempt{Target: "b:1", Status: 418})
		w.WriteHeader(418)
		_, _ = io.WriteString(w, "teapot")
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/", nil))

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
			}
		}
	}
	slices.Sort(lines)
	want := []string{
		"culvert.upstream.tries culvert.upstream=app,error=false,server.address=b:1 1",
		"culvert.upstream.tries culvert.upstream=app,error=true,server.address=a:1 1",
		"http.server.active_requests http.request.method=_OTHER 0",
		"http.server.request.duration culvert.upstream=app,http.request.method=_OTHER,http.response.status_code=418 1",
		"http.server.response.body.size culvert.upstream=app,http.request.method=_OTHER,http.response.status_code=418 6",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%q\nwant\n%q", lines, want)
	}
}
