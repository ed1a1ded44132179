package compose_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/examples/compose"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// The other libraries' filters keep what proxying needs.
func TestKeepsProxying(t *testing.T) {
	filtertest.Test(t, compose.Chain("https://app.test", 100000).Then)
}

func TestChain(t *testing.T) {
	h := compose.Chain("https://app.test", 2).ThenFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	do := func(addr, origin string) *http.Response {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = addr
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	if got := do("192.0.2.1:1", "https://app.test").Header.Get("Access-Control-Allow-Origin"); got != "https://app.test" {
		t.Errorf("the origin is not allowed: %q", got)
	}
	if got := do("192.0.2.1:2", "https://else.test").Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("another origin is allowed: %q", got)
	}
	if got := do("192.0.2.1:3", "https://app.test").StatusCode; got != 429 {
		t.Errorf("the third request got %d", got)
	}
	if got := do("192.0.2.2:1", "https://app.test").StatusCode; got != 204 {
		t.Errorf("another client got %d", got)
	}
}
