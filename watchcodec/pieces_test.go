package watchcodec_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestKindBehindItems: the kind of a list's items must be known before they are sent. If the items
// have kinds of their own, as those of custom resources do, it may come after them.
func TestKindBehindItems(t *testing.T) {
	var kinds []string
	note := func(o *watchcodec.Object) (bool, error) {
		kinds = append(kinds, fmt.Sprintf("%s %s %s", o.APIVersion(), o.Kind(), o.Name()))
		return true, nil
	}
	const (
		bare   = `"items":[{"metadata":{"name":"hidden"}}]`
		whole  = `"items":[{"apiVersion":"x/v1","kind":"Thing","metadata":{"name":"a"}}]`
		behind = `,"kind":"ThingList","metadata":{}`
		one    = "/apis/x/v1/namespaces/n/things/a"
	)
	for _, test := range []struct {
		path, sent string
		want       string // the kinds that the Rewriter receives, "" if it must not be called
	}{
		{"/apis/x/v1/things", `{"apiVersion":"x/v1",` + whole + behind + `}`, "x/v1 Thing a"},
		{"/apis/x/v1/things", `{"apiVersion":"x/v1",` + bare + behind + `}`, ""},
		{"/apis/x/v1/things", `{"kind":"ThingList",` + bare + `,"apiVersion":"x/v1"}`, ""},
		{"/apis/x/v1/things", `{"kind":"List","apiVersion":"x/v1",` + bare + `}`, ""},
		{"/apis/x/v1/things", `{` + bare + `}`, ""},
		{"/apis/x/v1/things", `{"kind":"ThingList","apiVersion":"x/v1",` + bare + `}`, "x/v1 Thing hidden"},
		{one, `{"metadata":{"name":"hidden"}}`, ""},
		{one, `{"kind":"Thing","metadata":{"name":"hidden"}}`, ""},
		{"/apis/x/v1/things?watch=1", `{"type":"ADDED","object":{"metadata":{"name":"hidden"}}}` + "\n", ""},
		{"/apis/x/v1/things?watch=1", `{"type":"ADDED","object":{"kind":"Thing","metadata":{"name":"hidden"}}}` + "\n", ""},
	} {
		for _, size := range []int{1, 1 << 20} {
			kinds = nil
			s := filtered(t, note, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{strings.NewReader(test.sent)}, make([]byte, size))
			})
			resp, got := wiretest.Get(t, s.URL+test.path)
			s.Close()
			if seen := strings.Join(kinds, ", "); seen != test.want || test.want == "" && strings.Contains(string(got), "hidden") {
				t.Errorf("%s in pieces of %d: the Rewriter sees %q, the client %d %s", test.sent, size, seen, resp.StatusCode, got)
			}
			if test.want == "" && size > 1 && resp.StatusCode != http.StatusBadGateway && !strings.Contains(string(got), `"type":"ERROR"`) {
				t.Errorf("%s: %d %s", test.sent, resp.StatusCode, got)
			}
		}
	}
}

// TestSmallPieces: a list takes time in proportion to its length, whichever part of it is long and
// however small the pieces are that it is received in.
func TestSmallPieces(t *testing.T) {
	size := wiretest.Size(12<<20, 4<<20)
	long := strings.Repeat("x", size)
	start := `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[`
	item := `{"metadata":{"name":"a"},"data":"` + long + `"}`
	row := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[{"cells":[],"object":` + item + `}]}`
	protobuf := func() string {
		field := func(number byte, content string) string {
			return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content)))) + content
		}
		list := field(1, "") + field(2, field(1, field(1, "a"))+field(2, long))
		return "k8s\x00" + field(1, field(1, "v1")+field(2, "PodList")) + field(2, list)
	}()
	spaces := strings.Repeat(" ", size)
	for name, list := range map[string]string{
		"an item":                    start + item + `]}`,
		"a second item":              start + `{"metadata":{"name":"b"}},` + item + `]}`,
		"a nested item":              start + `{"metadata":{"name":"a"},"data":[` + strings.Repeat("[1],", size/4) + `2]}]}`,
		"a row of a Table":           row,
		"a string beside the items":  `{"kind":"Status","message":"` + long + `"}`,
		"a number":                   `{"kind":"Status","code":` + strings.Repeat("1", size) + `}`,
		"white space before a comma": start + `{"metadata":{"name":"b"}}` + spaces + `,{}]}`,
		"white space after it":       start + `{"metadata":{"name":"b"}},` + spaces + `{}]}`,
		"in protobuf":                protobuf,
	} {
		contentType := "application/json"
		if list == protobuf {
			contentType = "application/vnd.kubernetes.protobuf"
		}
		f, err := watchcodec.NewFilter(watchcodec.FilterOptions{Tables: true, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seeAll }})
		if err != nil {
			t.Fatal(err)
		}
		h := f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			for p := []byte(list); len(p) > 0; p = p[min(len(p), 100):] {
				if _, err := w.Write(p[:min(len(p), 100)]); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		}))
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/pods", nil))
		}()
		select {
		case <-done:
		case <-time.After(time.Minute): // expected: a second or less; with quadratic time many minutes
			t.Fatalf("%s does not end", name)
		}
		if w.Code != http.StatusOK || w.Body.String() != list {
			t.Errorf("%s: %d, %d of %d bytes", name, w.Code, w.Body.Len(), len(list))
		}
	}
}

// TestLongKey: the length of a list's key is bounded, since the key is scanned again with each
// piece.
func TestLongKey(t *testing.T) {
	for _, list := range []string{`{"` + strings.Repeat("k", 5000), `{"kind"` + strings.Repeat(" ", 5000), `{"kind" :` + strings.Repeat("\n", 5000)} {
		s := filtered(t, seeAll, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, list)
		})
		if resp, got := wiretest.Get(t, s.URL+"/api/v1/pods"); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%.10s…: %d %.100s", list, resp.StatusCode, got)
		}
		s.Close()
	}
}
