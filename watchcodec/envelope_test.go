package watchcodec_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/watchcodec"
)

// TestEnvelopeWithoutObject: an envelope that ends before its object was cut off there. It is not
// that of an empty object, which a server sends as a field of no bytes.
func TestEnvelopeWithoutObject(t *testing.T) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	cut := "k8s\x00" + string(must(unknown.Marshal()))
	cut = strings.TrimSuffix(cut, "\x1a\x00\x22\x00")
	empty := cut + "\x12\x00"
	for sent, status := range map[string]int{cut: http.StatusBadGateway, empty: http.StatusOK} {
		f := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seeAll }}))
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/api/v1/namespaces/n/pods/a", nil)
		r.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
		f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = w.Write([]byte(sent))
		})).ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%q: %d %q, want %d", sent, w.Code, w.Body, status)
		}
		event := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte(sent)}}
		var e watchcodec.Event
		if err := e.Decode(watchcodec.Protobuf, must(event.Marshal())); (err == nil) != (status == http.StatusOK) {
			t.Errorf("an event with %q: %v", sent, err)
		}
	}
}
