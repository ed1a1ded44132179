package main

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// The gateway's parts work together: TLS, groups, retries, compression, log, metrics.
func TestGateway(t *testing.T) {
	text := strings.Repeat("a page of text. ", 200)
	serve := func(status int, text string) upstream.Target {
		return upstream.Target{Addr: wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				return
			}
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}))}
	}
	log := make(lines, 16)
	h, err := gateway([]upstream.Target{serve(200, text)}, []upstream.Target{serve(503, "no"), serve(200, "yes")}, slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(h)
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	get := func(path string) (*http.Response, string) {
		t.Helper()
		resp, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp, string(body)
	}
	resp, body := get("/")
	if cookie := resp.Header.Get("Set-Cookie"); body != text || !resp.Uncompressed || !strings.HasPrefix(cookie, "culvert=") || !strings.Contains(cookie, "; Secure") {
		t.Errorf("%s %v, %d bytes", resp.Status, resp.Header, len(body))
	}
	for range 2 {
		if resp, body := get("/api/x"); resp.StatusCode != 200 || body != "yes" {
			t.Errorf("%s %q", resp.Status, body)
		}
	}
	for range 3 {
		if line := <-log; !strings.Contains(line, `"status":200`) || !strings.Contains(line, `"upstream":"`) {
			t.Errorf("logged %q", line)
		}
	}
	_, metrics := get("/metrics")
	for _, want := range []string{`culvert_upstream_tries_total{result="2xx",target="`, `http_server_request_duration_seconds_count{culvert_upstream="api",http_request_method="GET",http_response_status_code="200",url_scheme="https"} 2`, `culvert_upstream_target_healthy{target="`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in\n%s", want, metrics)
		}
	}
}

type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
