package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

type givesBack struct{ resp *http.Response }

func (g givesBack) RoundTrip(*http.Request) (*http.Response, error) { return g.resp, nil }

// A transport of the user's that returns neither a response nor an error has failed by itself, and a response that it has
// made without a Body has none.
func TestTransportWithoutAResponse(t *testing.T) {
	for _, body := range []string{"", "hello"} {
		var f failures
		g := groupAt(t, upstream.Options{}, "a.invalid:1")
		get := func(resp *http.Response) int {
			w := httptest.NewRecorder()
			newProxy(t, anyPath, proxy.Options{Upstream: g, Transport: givesBack{resp}, OnError: f.add}).ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
			return w.Code
		}
		if status := get(nil); status != http.StatusInternalServerError {
			t.Errorf("no response: %d", status)
		}
		if e := f.only(t); e.Kind != culvert.Internal || !strings.HasSuffix(e.Error(), "proxy: Options.Transport (proxy_test.givesBack) returned (nil, nil)") {
			t.Errorf("failure %#v", e)
		}
		if status := get(&http.Response{StatusCode: http.StatusCreated, Header: http.Header{}}); status != http.StatusCreated {
			t.Errorf("no Body: %d", status)
		}
	}
}
