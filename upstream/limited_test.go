package upstream_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// A transport that limits its connections does not change the request, whose header other attempts may share.
func TestLimitedTransportLeavesTheHeader(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X")) }))
	tr, err := upstream.NewTransport(upstream.Options{MaxConnRequests: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["X"], r.Header["Connection"] = []string{"1"}, []string{"keep-alive"}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "1" || !resp.Close {
		t.Errorf("%q %v, close %v", body, err, resp.Close)
	}
	if len(r.Header) != 2 || r.Header.Get("Connection") != "keep-alive" {
		t.Errorf("header %v", r.Header)
	}
}
