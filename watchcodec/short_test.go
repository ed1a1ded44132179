package watchcodec_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A response of which the next handler has written less than its Content-Length, or nothing, can't
// be read: its client gets a 502, and no Content-Length that makes it look whole.
func TestResponseShorterThanAnnounced(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":404}`
	for name, test := range map[string]struct {
		path, contentType string
		status, length    int // -1 for no Content-Length
		sent              string
		all               bool // the client sees all objects
		want              int
	}{
		"nothing of a hidden object":        {carpsPath + "/n1", "application/json", 200, 181, "", false, http.StatusBadGateway},
		"nothing of an object":              {carpsPath + "/n1", "application/json", 200, 181, "", true, http.StatusBadGateway},
		"an empty object":                   {carpsPath + "/n1", "application/json", 200, 0, "", false, http.StatusBadGateway},
		"an empty object without a length":  {carpsPath + "/n1", "application/json", 200, -1, "", false, http.StatusBadGateway},
		"an empty object in protobuf":       {carpsPath + "/n1", "application/vnd.kubernetes.protobuf", 200, 0, "", false, http.StatusBadGateway},
		"an object without its line's end":  {carpsPath + "/n1", "application/json", 200, len(carp) + 1, carp, true, http.StatusBadGateway},
		"an object":                         {carpsPath + "/n1", "application/json", 200, len(carp), carp, true, http.StatusOK},
		"a Status that is cut":              {carpsPath + "/n1", "application/json", 404, len(status), status[:20], true, http.StatusBadGateway},
		"a Status":                          {carpsPath + "/n1", "application/json", 404, len(status), status, true, http.StatusNotFound},
		"no content":                        {carpsPath + "/n1", "application/json", 404, -1, "", true, http.StatusNotFound},
		"a 304 with the length of its 200":  {carpsPath + "/n1", "application/json", 304, 181, "", true, http.StatusNotModified},
		"nothing of a list":                 {carpsPath, "application/json", 200, 181, "", true, http.StatusBadGateway},
		"nothing of a list in protobuf":     {carpsPath, "application/vnd.kubernetes.protobuf", 200, 181, "", true, http.StatusBadGateway},
		"an empty list without a length":    {carpsPath, "application/json", 200, -1, "", true, http.StatusBadGateway},
		"a response in a form not readable": {carpsPath + "/n1", "text/html", 200, 181, "", true, http.StatusBadGateway},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if method == "HEAD" && test.path == carpsPath {
				continue // the response of a list has no content
			}
			for _, version := range []int{1, 2} {
				t.Run(method+" "+name+", HTTP/"+strconv.Itoa(version), func(t *testing.T) {
					s := httptest.NewUnstartedServer(showing(test.all)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Type", test.contentType)
						if test.length >= 0 {
							w.Header().Set("Content-Length", strconv.Itoa(test.length))
						}
						if test.status != http.StatusOK {
							w.WriteHeader(test.status)
						}
						_, _ = io.WriteString(w, test.sent)
					})))
					s.EnableHTTP2 = version == 2
					s.Config.ErrorLog = wiretest.Quiet()
					wiretest.StartTLS(s)
					defer s.Close()
					resp, err := s.Client().Do(must(http.NewRequest(method, s.URL+test.path, nil)))
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					content, err := io.ReadAll(resp.Body)
					if resp.StatusCode != test.want || err != nil && test.want != http.StatusNotModified { // Go's HTTP/2 client misses the content that its length announces
						t.Errorf("%d %q, %v, want %d", resp.StatusCode, content, err, test.want)
					}
				})
			}
		}
	}
}

// A watch of which the next handler has written less than its Content-Length is cut off, even if
// it ends after an event.
func TestWatchShorterThanAnnounced(t *testing.T) {
	event := `{"type":"ADDED","object":` + carp + "}\n"
	for _, missing := range []int{0, 1} {
		for _, version := range []int{1, 2} {
			t.Run("without "+strconv.Itoa(missing)+", HTTP/"+strconv.Itoa(version), func(t *testing.T) {
				s := httptest.NewUnstartedServer(showing(true)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Content-Length", strconv.Itoa(len(event)+missing))
					_, _ = io.WriteString(w, event)
					_ = http.NewResponseController(w).Flush()
				})))
				s.EnableHTTP2 = version == 2
				s.Config.ErrorLog = wiretest.Quiet()
				wiretest.StartTLS(s)
				defer s.Close()
				resp, err := s.Client().Get(s.URL + carpsPath + "?watch=1")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if content, err := io.ReadAll(resp.Body); string(content) != event || (err == nil) != (missing == 0) {
					t.Errorf("%q, %v", content, err)
				}
			})
		}
	}
}
