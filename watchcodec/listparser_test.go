package watchcodec_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/watchcodec"
)

// parse writes a list to a ListParser in pieces, and returns the parser, the names of the items and
// the first error.
func parse(f watchcodec.Format, list []byte, piece, maxObject int) (p *watchcodec.ListParser, names []string, err error) {
	p = watchcodec.NewListParser(f, maxObject, func(o *watchcodec.Object) error {
		names = append(names, string(o.Name()))
		return nil
	})
	for rest := list; len(rest) > 0 && err == nil; {
		n := min(piece, len(rest))
		_, err = p.Write(rest[:n])
		rest = rest[n:]
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	return p, names, err
}

// inBoth returns a list with items, of which each has the encoding of its format, in JSON and in
// protobuf.
func inBoth(t *testing.T, items map[watchcodec.Format][]byte) map[watchcodec.Format][]byte {
	t.Helper()
	encoded := map[watchcodec.Format][]byte{}
	for f, item := range items {
		var b bytes.Buffer
		list := watchcodec.List{Format: f, APIVersion: "v1", Kind: "Pod", ResourceVersion: "7", Items: [][]byte{item}}
		if _, err := list.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		encoded[f] = b.Bytes()
	}
	return encoded
}

// podNamed returns a Pod that has only a name, as an item of a list in either format.
func podNamed(name string) map[watchcodec.Format][]byte {
	field := func(number byte, content string) string {
		return string([]byte{number<<3 | 2, byte(len(content))}) + content
	}
	return map[watchcodec.Format][]byte{
		watchcodec.JSON:     fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name),
		watchcodec.Protobuf: []byte(field(1, field(1, name))),
	}
}

// TestListParser: what a parser returns of a list, however the list is written to it.
func TestListParser(t *testing.T) {
	for f, list := range inBoth(t, podNamed("a")) {
		for _, piece := range []int{1, 7, len(list)} {
			p, names, err := parse(f, list, piece, 0)
			if apiVersion, kind := p.Kind(); err != nil || fmt.Sprint(names) != "[a]" || apiVersion != "v1" || kind != "PodList" || p.ResourceVersion() != "7" || p.Continue() != "" {
				t.Errorf("format %d in pieces of %d: %v, %s %s at %q, continue %q: %v", f, piece, names, apiVersion, kind, p.ResourceVersion(), p.Continue(), err)
			}
		}
	}
}

// TestParserOfNoList: an object that is not a list is not taken for an empty one.
func TestParserOfNoList(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string // of the error; "" for a list
	}{
		"nothing":                         {`{}`, `watchcodec: a "" in the place of a list`},
		"an object":                       {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"secret"}}`, `watchcodec: a "Pod" in the place of a list`},
		"a Status":                        {`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`, `watchcodec: a "Status" in the place of a list`},
		"a Status without content":        {`{"kind":"Status","apiVersion":"v1","metadata":{}}`, `watchcodec: a "Status" in the place of a list`},
		"an object with null as items":    {`{"kind":"Pod","apiVersion":"v1","metadata":{},"items":null}`, `watchcodec: a "Pod" in the place of a list`},
		"a list without items":            {`{"kind":"PodList","apiVersion":"v1","metadata":{}}`, ""},
		"a list with null as items":       {`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`, ""},
		"an empty list":                   {`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`, ""},
		"a list whose kind comes last":    {`{"metadata":{},"items":[],"apiVersion":"v1","kind":"PodList"}`, ""},
		"a list of a custom kind of list": {`{"kind":"Shoal","apiVersion":"example.org/v1","metadata":{},"items":[]}`, ""},
	} {
		for _, piece := range []int{1, len(test.text)} {
			_, _, err := parse(watchcodec.JSON, []byte(test.text), piece, 0)
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("%s, in pieces of %d: error %v, want %q", name, piece, err, test.want)
			}
		}
	}
	status := watchcodec.AppendError(nil, watchcodec.Protobuf, watchcodec.NewFailure(410, "Expired", "x"))
	status = status[bytes.Index(status, []byte("k8s\x00")):]
	if _, _, err := parse(watchcodec.Protobuf, status, len(status), 0); err == nil {
		t.Error("a Status in protobuf is taken for a list")
	}
}

// TestLargestObjectOfAList: an item of MaxObject bytes is accepted and one that is larger is not,
// however it is written.
func TestLargestObjectOfAList(t *testing.T) {
	for f, list := range inBoth(t, podNamed(strings.Repeat("n", 80))) {
		size := len(podNamed(strings.Repeat("n", 80))[f])
		for _, piece := range []int{1, 7, len(list)} {
			if _, _, err := parse(f, list, piece, size); err != nil {
				t.Errorf("format %d in pieces of %d: an item of MaxObject: %v", f, piece, err)
			}
			if _, names, err := parse(f, list, piece, size-1); err == nil || len(names) > 0 {
				t.Errorf("format %d in pieces of %d: an item of MaxObject and one byte is accepted", f, piece)
			}
		}
	}
}

// TestNoListBehindTheFilter: an object in the place of a list reaches no client, not even its
// metadata, since no Rewriter has seen it.
func TestNoListBehindTheFilter(t *testing.T) {
	for _, object := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"secret"}}`,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"secret"},"spec":{}}`,
		`{"metadata":{"name":"secret"},"apiVersion":"v1","kind":"Pod"}`,
		`{}`,
	} {
		for _, piece := range []int{1, len(object)} {
			w := httptest.NewRecorder()
			showing(true)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for rest := object; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					if _, err := io.WriteString(w, rest[:min(piece, len(rest))]); err != nil {
						return
					}
				}
			})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil))
			if w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s in pieces of %d: %d %s", object, piece, w.Code, w.Body)
			}
		}
	}
}

// TestRemainingItemCountTwice: each of several counts is removed, however its key is escaped.
func TestRemainingItemCountTwice(t *testing.T) {
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{"remainingItemCount":5,"resourceVersion":"1","remainingItemCount":6,"remainingItemCoun\u0074":7},"items":[]}`
	w := httptest.NewRecorder()
	showing(true)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, list)
	})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil))
	if want := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`; w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
}

// TestWhiteSpaceBeforeAList: what is held until an object is known to be a list is bounded.
func TestWhiteSpaceBeforeAList(t *testing.T) {
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{MaxObject: 1000, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return true, nil }
	}}))
	for _, before := range []string{"", `{"metadata":{},`} {
		written := 0
		w := httptest.NewRecorder()
		filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, before)
			for range 1 << 10 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 100)); err != nil {
					return
				}
				written += 100
			}
		})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil))
		if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "over the limit") {
			t.Errorf("after %q: %d %.200s, %d bytes written", before, w.Code, w.Body, written)
		}
	}
}
