package filters_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// The response to HEAD has no other Content-Length than the response to GET, if the handler writes its content for both.
func TestHeadHasNoOtherLength(t *testing.T) {
	leaktest.Check(t)
	text := bytes.Repeat([]byte("text "), 300)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(text)
	_ = z.Close()
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		t.Fatal(err)
	}
	decompress, err := filters.Decompress(filters.DecompressOptions{Responses: true})
	if err != nil {
		t.Fatal(err)
	}
	edit, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(o *watchcodec.Object) (bool, error) { return false, nil }
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		filter  culvert.Filter
		header  http.Header
		content []byte
	}{
		{"Compress", compress, http.Header{"Content-Type": {"text/plain"}}, text},
		{"Decompress", decompress, http.Header{"Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"}}, zipped.Bytes()},
		{"watchcodec", edit, http.Header{"Content-Type": {"application/json"}},
			[]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := wiretest.Dial(t, wiretest.Serve(t, c.filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for name, values := range c.header {
					w.Header()[name] = values
				}
				_, _ = w.Write(c.content)
			}))))
			lengths := map[string]int{}
			for _, method := range []string{"GET", "HEAD"} {
				client.Send(method + " /api/v1/pods HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
				resp, content := client.Response(method)
				lengths[method] = len(content)
				if v := resp.Header.Get("Content-Length"); method == "HEAD" && v != "" {
					t.Errorf("HEAD: Content-Length %s, GET has %d bytes", v, lengths["GET"])
				}
			}
			if lengths["GET"] == 0 || lengths["GET"] == len(c.content) {
				t.Errorf("GET has %d bytes: the filter did nothing", lengths["GET"])
			}
		})
	}
}
