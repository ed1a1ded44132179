package maintenance_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/examples/recipes/maintenance"
	"github.com/culvert-go/culvert/filters/filtertest"
)

func TestSwitch(t *testing.T) {
	s := &maintenance.Switch{Page: "<h1>Back at noon</h1>"}
	chain, err := maintenance.Chain(s)
	if err != nil {
		t.Fatal(err)
	}
	h := chain.ThenFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, on := range []bool{false, true, false} {
		s.On.Store(on)
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !on {
			if w.Code != http.StatusNoContent {
				t.Errorf("off: status %d", w.Code)
			}
			continue
		}
		if w.Code != http.StatusServiceUnavailable || w.Body.String() != s.Page || w.Header().Get("Retry-After") != "120" {
			t.Errorf("on: %d, %v, %s", w.Code, w.Header(), w.Body)
		}
		if got := w.Header().Get("Cache-Control"); got != "private, no-cache" {
			t.Errorf("Cache-Control %q", got)
		}
		if v, sticks := cachectl.Sticks(&cachectl.Response{Request: r, Status: w.Code, Header: w.Header()}); sticks {
			t.Errorf("the page is kept: %+v", v)
		}
	}
}

func TestSwitchKeepsProxying(t *testing.T) {
	filtertest.Test(t, (&maintenance.Switch{}).Filter)
}
