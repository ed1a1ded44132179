package engine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// loadForBenchmark loads a configuration whose http block has the given text.
func loadForBenchmark(b *testing.B, http string) *engine.Engine {
	b.Helper()
	dir := b.TempDir()
	for name, text := range map[string]string{"nginx.conf": "events {} http { access_log access.log; " + http + " }", "f.txt": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	e, err := engine.Load(engine.LoadOptions{Prefix: dir, File: "nginx.conf"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	return e
}

// BenchmarkRequest is a request without a connection to the client: what the engine costs.
func BenchmarkRequest(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer upstream.Close()
	e := loadForBenchmark(b, `
		limit_req_zone $host zone=req:1m rate=1000000r/s;
		server {
			root .;
			location = /return { return 200 hello; }
			location = /f.txt { expires 1h; add_header X-A b; }
			location = /limited { limit_req zone=req burst=1000000 nodelay; allow all; rewrite ^ /f.txt break; }
			location = /proxied { proxy_pass `+upstream.URL+`; proxy_set_header X-Real-IP $remote_addr; }
		}`)
	handler := e.Listeners()[0].Handler
	for _, target := range []string{"/return", "/f.txt", "/limited", "/proxied"} {
		b.Run(target[1:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// BenchmarkLoad loads a configuration of 500 servers.
func BenchmarkLoad(b *testing.B) {
	var servers strings.Builder
	for i := range 500 {
		fmt.Fprintf(&servers, "server { server_name s%d; gzip on; location / { proxy_pass http://127.0.0.1:1; } location ~ \\.html$ { expires 1h; } }\n", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		loadForBenchmark(b, servers.String())
	}
}
