package watchcodec_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A response in whose place the filter sends a Status does not wait for the rest of its content, which may never come. The
// client's next request gets its own response, and the server is not to blame.
func TestRefusedContentIsNotAwaited(t *testing.T) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		path, contentType, encoding, content string
	}{
		"a list of another type":         {"/api/v1/pods", "text/html", "", "<p>"},
		"a list of another encoding":     {"/api/v1/pods", "application/json", "br", "x"},
		"a list that can't be read":      {"/api/v1/pods", "application/json", "", "no list"},
		"a list in gzip, can't be read":  {"/api/v1/pods", "application/json", "gzip", "no list"},
		"an object of another type":      {"/api/v1/namespaces/a/pods/b", "text/html", "", "<p>"},
		"a watch of another type":        {"/api/v1/pods?watch=1", "text/html", "", "<p>"},
		"a protobuf list, can't be read": {"/api/v1/pods", "application/vnd.kubernetes.protobuf", "", "no protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			left := make(chan bool, 1)
			target := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/next" {
					_, _ = io.WriteString(w, "next")
					return
				}
				w.Header().Set("Content-Type", test.contentType)
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
				}
				var content io.Writer = w
				if test.encoding == "gzip" {
					z := gzip.NewWriter(w)
					defer z.Reset(io.Discard)
					content = flushed{z}
				}
				_, _ = io.WriteString(content, test.content)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				left <- true
			}))
			defer target.Close()
			group := must(upstream.New(upstream.Options{}, upstream.Target{Addr: target.Listener.Addr().String()}))
			defer group.Close()
			p := must(proxy.New(proxy.Options{Upstream: group, OnError: func(_ *http.Request, e *culvert.Error) { t.Errorf("OnError is called with %v", e) }}))
			client := wiretest.Dial(t, wiretest.Serve(t, must(newSmallFilter())(p)))
			client.Send("GET " + test.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
			if resp, body := client.Response("GET"); resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, `"kind":"Status"`) {
				t.Errorf("the client receives %d %q", resp.StatusCode, body)
			}
			wiretest.Await(t, left, "end of the request at the target")
			client.Send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
			if resp, body := client.Response("GET"); resp.StatusCode != http.StatusOK || body != "next" {
				t.Errorf("the next request gets %d %q", resp.StatusCode, body)
			}
			for s := range group.Targets() {
				if s.Fails != 0 || s.InFlight != 0 {
					t.Errorf("the target is %+v", s)
				}
			}
		})
	}
}

// flushed flushes each write.
type flushed struct{ *gzip.Writer }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}
