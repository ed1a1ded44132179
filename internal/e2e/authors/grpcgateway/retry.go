package main

import (
	"net/http"

	"github.com/culvert-go/culvert/proxy"
)

// unavailable gives responses with the grpc-status UNAVAILABLE and no messages the status 503, by which proxy.Retry finds
// them. restoreUnavailable gives the last one, which is relayed, its 200 back.
type unavailable struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *unavailable) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil && isUnavailable(resp) {
		resp.StatusCode = http.StatusServiceUnavailable
	}
	return resp, err
}

func isUnavailable(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && resp.Header.Get("Grpc-Status") == "14"
}

// restoreUnavailable is proxy.Options.ModifyResponse.
func restoreUnavailable(r *proxy.Response) {
	if r.Status == http.StatusServiceUnavailable && r.Header.Get("Grpc-Status") == "14" {
		r.Status = http.StatusOK
	}
}
