package engine_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// least_time sends requests to the server whose last ones were done first: here one whose first body took a second is avoided, which
// has sent its headers at once.
func TestLeastTime(t *testing.T) {
	backend := func(name string, late time.Duration) string {
		var once sync.Once
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Name", name)
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			once.Do(func() { <-time.After(late) })
			io.WriteString(w, name)
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("A", backend("a", time.Second), "B", backend("b", 0)).Replace(
		`events {} http { upstream u { least_time last_byte; server A; server B; } server { location / { proxy_pass http://u; } } }`)})
	var got []string
	for range 6 {
		got = append(got, s.get("/").Header.Get("X-Name"))
	}
	equal(t, "servers", strings.Join(got, " "), "a b b b b b")
	for directive, want := range map[string]string{"least_time some": `invalid value "some"`, "least_time header some": `invalid parameter "some"`, "least_time connect": `invalid value "connect"`} {
		if _, err := load(t, map[string]string{"nginx.conf": "events {} http { upstream u { " + directive + "; server 127.0.0.1:1; } }"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", directive, err)
		}
	}
}
