package watchcodec_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// Header fields that the next handler sets after WriteHeader, the value of a trailer for instance,
// are not part of the header of a held response, as they would not be of another. A list has its
// trailers.
func TestTrailersOfAHeldResponse(t *testing.T) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: must((&metav1.PartialObjectMetadataList{}).Marshal())}
	for name, test := range map[string]struct {
		path, contentType, content string
		status                     int
	}{
		"an object":          {carpsPath + "/n1", "application/json", carp, http.StatusOK},
		"a failure":          {carpsPath + "/n1", "application/json", "{}", http.StatusNotFound},
		"a list in protobuf": {carpsPath, "application/vnd.kubernetes.protobuf", "k8s\x00" + string(must(unknown.Marshal())), http.StatusOK},
	} {
		for _, version := range []int{1, 2} {
			t.Run(name+", HTTP/"+strconv.Itoa(version), func(t *testing.T) {
				s := httptest.NewUnstartedServer(showing(true)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", test.contentType)
					w.Header().Set("Trailer", "X-Sum")
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.content)
					w.Header().Set("X-Sum", "7")
					w.Header().Set("X-Late", "8")
					w.Header().Set(http.TrailerPrefix+"X-Further", "9")
				})))
				s.EnableHTTP2 = version == 2
				s.Config.ErrorLog = wiretest.Quiet()
				s.StartTLS()
				defer s.Close()
				resp, err := s.Client().Get(s.URL + test.path)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if content, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != test.status || string(content) != test.content {
					t.Errorf("%d %q, %v", resp.StatusCode, content, err)
				}
				if got := resp.Header; got["X-Sum"] != nil || got["X-Late"] != nil || got["X-Further"] != nil {
					t.Errorf("the header is %v", got)
				}
				if list := test.path == carpsPath; list != (resp.Trailer.Get("X-Sum") == "7") || list != (resp.Trailer.Get("X-Further") == "9") {
					t.Errorf("the trailers are %v", resp.Trailer)
				}
			})
		}
	}
}

// A trailer with a checksum of the content is removed, since the content is rewritten. Others are kept.
func TestDigestTrailerOfARewrittenList(t *testing.T) {
	s := httptest.NewServer(showing(true)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Trailer", "Repr-Digest, X-End")
		_, _ = io.WriteString(w, `{"kind":"CarpList","apiVersion":"v1","metadata":{},"items":[]}`)
		w.Header().Set("Repr-Digest", "sha-256=:AAAA:")
		w.Header().Set("X-End", "1")
	})))
	defer s.Close()
	resp, err := s.Client().Get(s.URL + carpsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if resp.Trailer.Get("Repr-Digest") != "" || resp.Trailer.Get("X-End") != "1" {
		t.Errorf("the trailers are %v", resp.Trailer)
	}
}
