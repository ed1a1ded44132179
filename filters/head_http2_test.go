package filters_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// Content that is written for HEAD over HTTP/2 does not abort the response, however long it is: net/http's writer
// discards it, and returns no error.
func TestLongPageForHeadOverHTTP2(t *testing.T) {
	leaktest.Check(t)
	page := bytes.Repeat([]byte("x"), 5000)
	ended := make(chan culvert.ResponseStats, 1)
	chain := filters.NewChain(
		filters.OnResponse(filters.ResponseHooks{End: func(_ *http.Request, s culvert.ResponseStats) { ended <- s }}),
		filters.ErrorPages(func(int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
		}))
	server := httptest.NewUnstartedServer(chain.ThenFunc(http.NotFound))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	wiretest.Start(server)
	defer server.Close()
	transport := &http.Transport{Protocols: server.Config.Protocols}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Head(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if s := wiretest.Await(t, ended, "handler's end"); s.Aborted || resp.StatusCode != http.StatusNotFound || resp.ProtoMajor != 2 {
		t.Errorf("%s, aborted %v", resp.Status, s.Aborted)
	}
}
