package e2e

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/watchcodec"
)

// TestListsAsTheKubernetesCodecs: of every list that a real kube-apiserver has sent, what
// the filter gives is what decoding it with Kubernetes' own codecs, hiding and changing
// items and encoding it gives, to the byte, however the list comes in pieces.
func TestListsAsTheKubernetesCodecs(t *testing.T) {
	compared := 0
	for _, r := range listRecordings(t) {
		for _, c := range changes {
			want := typedList(t, r, c)
			for _, piece := range []int{1, 1000, len(r.body) + 1} {
				if len(r.body) > 100<<10 && piece == 1 {
					continue
				}
				if got := filteredList(t, r, c, piece); !bytes.Equal(got, want) {
					t.Fatalf("%s, %s, in pieces of %d:\n%q\nwant\n%q", r.name, c.name, piece, got, want)
				}
				compared++
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d lists compared", compared)
	}
}

// listRecordings are the lists of typed objects in the testdata of watchcodec.
func listRecordings(t *testing.T) (lists []watchRecording) {
	for _, r := range recordings(t, func(name, target string) bool {
		return !strings.Contains(target, "watch") && !strings.Contains(name, "pretty")
	}) {
		if list, _, err := codecs[r.format].Decode(r.body, nil, nil); err == nil && meta.IsListType(list) {
			lists = append(lists, r)
		}
	}
	return lists
}

// notHidden reports whether an object is not hidden.
func notHidden(name string) bool { return len(name)%3 != 0 }

func typedList(t *testing.T, r watchRecording, c change) []byte {
	t.Helper()
	list, _, err := codecs[r.format].Decode(r.body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	kept := []runtime.Object{}
	for _, item := range items {
		if notHidden(accessor(item).GetName()) {
			c.typed(item)
			kept = append(kept, item)
		}
	}
	if err := meta.SetList(list, kept); err != nil {
		t.Fatal(err)
	}
	list.(metav1.ListInterface).SetRemainingItemCount(nil)
	var out bytes.Buffer
	if err := codecs[r.format].Encode(list, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func filteredList(t *testing.T, r watchRecording, c change, piece int) []byte {
	t.Helper()
	filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(o *watchcodec.Object) (bool, error) {
			return notHidden(string(o.Name())), o.Edit(c.edits(string(o.Kind()))...)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	contentType := map[watchcodec.Format]string{watchcodec.JSON: "application/json", watchcodec.Protobuf: "application/vnd.kubernetes.protobuf"}[r.format]
	h := filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for rest := r.body; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			_, _ = w.Write(rest[:min(piece, len(rest))])
		}
	}))
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	req.Header.Set("Accept", contentType)
	h.ServeHTTP(w, req)
	return w.Body.Bytes()
}

// FuzzEdits: edits of the bytes of any well-formed object give the bytes that Kubernetes' own
// codecs give for the edited object.
func FuzzEdits(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"z":"1","b":"\u003c"},"managedFields":[{"manager":"x"}]},"spec":{"nodeName":"n"}}`))
	f.Add([]byte(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"managedFields":[{},{}],"annotations":{"topologyKeys":"[]"}},"addressType":"IPv4","endpoints":[{"addresses":["1"],"zone":"a"},{"addresses":[],"zone":"b"},{"zone":"xa"}],"ports":null}`))
	f.Add([]byte(`{"kind":"Service","apiVersion":"v1","metadata":{"annotations":{"topologyKeys":"[\"zone1\"]","k":"é\u2028"}},"spec":{"ports":[{"port":1}],"selector":{"app":"x"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		object, _, err := codecs[watchcodec.JSON].Decode(text, nil, nil)
		if err != nil || meta.IsListType(object) {
			return
		}
		if _, err := meta.Accessor(object); err != nil {
			return
		}
		for format, codec := range codecs {
			for _, c := range changes {
				fuzzEdit(t, object, c, format, codec)
			}
		}
	})
}

func fuzzEdit(t *testing.T, object runtime.Object, c change, format watchcodec.Format, codec runtime.Serializer) {
	var encoded bytes.Buffer
	if codec.Encode(object, &encoded) != nil {
		return
	}
	if _, _, err := codec.Decode(encoded.Bytes(), nil, nil); err != nil {
		return // it had no apiVersion but by another case, for instance
	}
	r := watchRecording{name: "fuzz", format: format}
	r.body = appendTypedEvent(t, nil, format, "MODIFIED", encoded.Bytes())
	if n := compare(t, r, c, codec); n != 1 {
		t.Errorf("%s: %d events of %q", c.name, n, r.body)
	}
}
