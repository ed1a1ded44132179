package watchcodec_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/culvert-go/culvert/watchcodec"
)

// TestHead: the header of the response to a HEAD is that of a GET, and reveals no more of a hidden
// object.
func TestHead(t *testing.T) {
	const (
		seen   = `{"kind":"Carp","apiVersion":"v1","metadata":{"name":"n1","labels":{"shown":"true"}},"spec":{"nodeName":"a"}}`
		hidden = `{"kind":"Carp","apiVersion":"v1","metadata":{"name":"n1"}}`
		list   = `{"kind":"CarpList","apiVersion":"v1","metadata":{},"items":[` + seen + `]}`
	)
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(o *watchcodec.Object) (bool, error) {
			shown, _ := o.Label("shown")
			return string(shown) == "true", o.Edit(watchcodec.Set("elsewhere", toSpec, toNode))
		}
	}}))
	for name, test := range map[string]struct {
		path, content string
		zipped        bool
	}{
		"an object":                    {carpsPath + "/n1", seen, false},
		"an object that is compressed": {carpsPath + "/n1", seen, true},
		"a hidden object":              {carpsPath + "/n1", hidden, false},
		"a list":                       {carpsPath, list, false},
		"a list that is compressed":    {carpsPath, list, true},
		"a watch that is compressed":   {carpsPath + "?watch=1", `{"type":"ADDED","object":` + seen + "}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			content := []byte(test.content)
			server := filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if test.zipped {
					var b bytes.Buffer
					z := gzip.NewWriter(&b)
					_, _ = io.WriteString(z, test.content)
					_ = z.Close()
					content = b.Bytes()
					w.Header().Set("Content-Encoding", "gzip")
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				if r.Method != http.MethodHead {
					_, _ = w.Write(content)
				}
			}))
			var responses [2]*httptest.ResponseRecorder
			for i, method := range []string{"GET", "HEAD"} {
				responses[i] = httptest.NewRecorder()
				server.ServeHTTP(responses[i], httptest.NewRequest(method, test.path, nil))
			}
			get, head := responses[0], responses[1]
			if get.Code != head.Code {
				t.Errorf("HEAD has status %d, GET %d", head.Code, get.Code)
			}
			for _, field := range []string{"Content-Type", "Content-Encoding", "Content-Length"} {
				if got, want := head.Header().Get(field), get.Header().Get(field); got != want {
					t.Errorf("HEAD has %s %q, GET %q", field, got, want)
				}
			}
		})
	}
}
