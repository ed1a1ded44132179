package watchcodec_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client of HTTP/1.0 receives a 502, as others do, where the server cuts off a response that the filter still holds. A
// list of which a part was sent is reset.
func TestCutResponseOverHTTP10(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sent") == "half" {
			io.WriteString(w, `{"kind":"CarpList","apiVersion":"mygroup.example.com/v1","metadata":{"resourceVersion":"1"},"items":[`)
			io.WriteString(w, strings.Repeat(carp+",", 5000))
		} else {
			io.WriteString(w, `{"kind":"C`)
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	group := must(upstream.New(upstream.Options{}, upstream.Target{Addr: target}))
	defer group.Close()
	p := must(proxy.New(proxy.Options{Upstream: group}))
	front := wiretest.Serve(t, showing(true)(p))
	for path, replaced := range map[string]bool{
		carpsPath + "/n1":        true,
		carpsPath:                true,
		carpsPath + "?sent=half": false,
	} {
		c := wiretest.Dial(t, front)
		c.Send("GET " + path + " HTTP/1.0\r\nHost: a\r\n\r\n")
		got, err := io.ReadAll(c.R)
		if is502 := strings.HasPrefix(string(got), "HTTP/1.0 502 "); is502 != replaced || (err == nil) != replaced {
			t.Errorf("%s: %.200q of %d bytes, error %v", path, got, len(got), err)
		}
	}
}
