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
				wiretest.StartTLS(s)
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

// A trailer with a checksum of the content is removed, announced or not, since the content is rewritten. Others are kept.
func TestDigestTrailers(t *testing.T) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "CarpList"}, Raw: must((&metav1.PartialObjectMetadataList{}).Marshal())}
	for name, test := range map[string]struct {
		query, contentType, content string
		kept                        bool // other trailers are
	}{
		"a list in JSON":     {"", "application/json", `{"kind":"CarpList","apiVersion":"v1","metadata":{},"items":[]}`, true},
		"a list in protobuf": {"", "application/vnd.kubernetes.protobuf", "k8s\x00" + string(must(unknown.Marshal())), true},
		"a watch":            {"?watch=1", "application/json", `{"type":"ADDED","object":` + carp + "}\n", true},
		"a refused list":     {"", "text/plain", "carps", false},
	} {
		for _, announced := range []bool{true, false} {
			t.Run(name+", announced "+strconv.FormatBool(announced), func(t *testing.T) {
				s := wiretest.NewServer(showing(true)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", test.contentType)
					prefix := http.TrailerPrefix
					if announced {
						w.Header().Set("Trailer", "Repr-Digest, X-End")
						prefix = ""
					}
					_, _ = io.WriteString(w, test.content)
					_ = http.NewResponseController(w).Flush()
					w.Header()[prefix+"Repr-Digest"] = []string{"sha-256=:AAAA:"}
					w.Header()[prefix+"X-End"] = []string{"1"}
				})))
				defer s.Close()
				resp, err := s.Client().Get(s.URL + carpsPath + test.query)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if content, err := io.ReadAll(resp.Body); err != nil || (string(content) == test.content) != test.kept {
					t.Fatalf("%q, %v", content, err)
				}
				if resp.Trailer.Get("Repr-Digest") != "" || announced && (resp.Trailer.Get("X-End") == "1") != test.kept {
					t.Errorf("the trailers are %v", resp.Trailer)
				}
			})
		}
	}
}
