package engine_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// proxy_limit_rate lets the rate's bytes pass at once and the others at the rate. It may have variables, of the upstream's response too.
func TestProxyLimitRate(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Rate", r.URL.Query().Get("rate"))
		io.WriteString(w, strings.Repeat("x", 1020))
	}))
	defer up.Close()
	s := serve(t, server(strings.ReplaceAll(`location / { proxy_limit_rate $upstream_http_x_rate; proxy_pass http://UP; }`, "UP", up.Listener.Addr().String())))
	for rate, least := range map[string]time.Duration{"1000": 20 * time.Millisecond, "0": 0, "": 0, "nonsense": 0} {
		start := time.Now()
		got := s.get("/?rate=" + rate)
		if took := time.Since(start); len(got.body) != 1020 || took < least {
			t.Errorf("rate %q: %d bytes after %v", rate, len(got.body), took)
		}
	}
	if _, err := load(t, server("proxy_limit_rate nonsense;")); err == nil {
		t.Error("a rate that is none")
	}
}
