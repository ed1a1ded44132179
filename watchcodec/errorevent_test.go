package watchcodec_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestErrorEventArrives: the ERROR event of a watch that the filter ends reaches its client,
// although the handler then aborts the response, as a proxy does when its writes fail.
func TestErrorEventArrives(t *testing.T) {
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return false, errors.New("refused") }
	}}))
	handler := filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, `{"type":"ADDED","object":{"kind":"Carp","apiVersion":"v1","metadata":{"name":"n1"}}}`+"\n"); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			server := httptest.NewUnstartedServer(handler)
			server.EnableHTTP2 = protocol == "HTTP/2"
			wiretest.StartTLS(server)
			defer server.Close()
			resp, err := server.Client().Get(server.URL + carpsPath + "?watch=1")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			event := struct{ Type string }{}
			events := json.NewDecoder(resp.Body)
			if err := events.Decode(&event); err != nil || event.Type != "ERROR" {
				t.Errorf("the client reads %+v, %v, want an ERROR event", event, err)
			}
			if err := events.Decode(&event); err == nil || err == io.EOF {
				t.Errorf("the watch looks whole after it: %+v, %v", event, err)
			}
		})
	}
}
