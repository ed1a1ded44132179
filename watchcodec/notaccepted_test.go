package watchcodec_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

func showing(all bool) func(http.Handler) http.Handler {
	return must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(*watchcodec.Object) (bool, error) { return all, nil }
	}}))
}

const carp = `{"kind":"Carp","apiVersion":"mygroup.example.com/v1","metadata":{"name":"n1","resourceVersion":"1"}}`

// A client that accepts nothing of a response that the filter sends by itself, a refusal or a held
// response, holds up neither handler nor connection.
func TestResponseThatIsNotAccepted(t *testing.T) {
	const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	long := `{"kind":"Carp","apiVersion":"mygroup.example.com/v1","metadata":{"name":"n1","resourceVersion":"1","annotations":{"a":"` + strings.Repeat("x", 200<<10) + `"}}}`
	serving := func(status int, content string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, content)
		}
	}
	for name, test := range map[string]struct {
		next    http.HandlerFunc
		request string
	}{
		"403":                      {nil, "PUT " + carpsPath + "/n1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		"406":                      {nil, "GET " + carpsPath + " HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n"},
		"404":                      {serving(http.StatusNotFound, carp), "GET " + carpsPath + "/n1 HTTP/1.1\r\nHost: a\r\n\r\n"},
		"object":                   {serving(http.StatusOK, long), "GET " + carpsPath + "/n1 HTTP/1.1\r\nHost: a\r\n\r\n"},
		"no object":                {serving(http.StatusOK, "no"), "GET " + carpsPath + "/n1 HTTP/1.1\r\nHost: a\r\n\r\n"},
		"no list":                  {serving(http.StatusOK, "no"), "GET " + carpsPath + " HTTP/1.1\r\nHost: a\r\n\r\n"},
		"a WebSocket":              {serving(http.StatusOK, ""), "GET " + carpsPath + "?watch=1 HTTP/1.1\r\nHost: a\r\n" + upgrade + "\r\n"},
		"no WebSocket":             {serving(http.StatusForbidden, long), "GET " + carpsPath + "?watch=1 HTTP/1.1\r\nHost: a\r\n" + upgrade + "\r\n"},
		"another site's WebSocket": {serving(http.StatusOK, ""), "GET " + carpsPath + "?watch=1 HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n" + upgrade + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				wiretest.NotAccepted(t, showing(true)(test.next), test.request)
			})
		})
	}
}

// A response that the server cuts off before any of it was sent to the client becomes a 502 and no
// abort. After a part of it was sent, and for a client that has left, the abort is passed on.
func TestHeldResponseThatBreaksOff(t *testing.T) {
	for name, test := range map[string]struct {
		path, sent string
		gone       bool
		want       int
	}{
		"a list in protobuf":             {carpsPath, "k8s\x00\x0a\x10", false, http.StatusBadGateway},
		"what is no list":                {carpsPath, "no list", false, http.StatusBadGateway},
		"a list without a byte":          {carpsPath, "", false, http.StatusBadGateway},
		"an object":                      {carpsPath + "/n1", carp[:20], false, http.StatusBadGateway},
		"an object, as a whole":          {carpsPath + "/n1", carp, false, http.StatusBadGateway},
		"an object, the client has left": {carpsPath + "/n1", carp, true, 0},
		"a list, the client has left":    {carpsPath, "", true, 0},
		"a part of a list":               {carpsPath, `{"kind":"CarpList","apiVersion":"mygroup.example.com/v1","metadata":{},"items":[` + carp, false, 0},
	} {
		for _, version := range []int{1, 2} {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if strings.HasPrefix(test.sent, "k8s") {
						w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
					}
					w.Header().Set("X-Of-Server", "yes")
					w.WriteHeader(http.StatusOK)
					_, _ = io.WriteString(w, test.sent)
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				})
				if test.gone {
					r = left(r)
				}
				showing(true)(next).ServeHTTP(w, r)
			}))
			s.EnableHTTP2 = version == 2
			s.Config.ErrorLog = wiretest.Quiet()
			wiretest.StartTLS(s)
			resp, err := s.Client().Get(s.URL + test.path)
			status := 0
			if err == nil {
				var content []byte
				if content, err = io.ReadAll(resp.Body); err == nil {
					status = resp.StatusCode
				}
				if status == http.StatusBadGateway && (!strings.Contains(string(content), `"kind":"Status"`) || resp.Header["X-Of-Server"] != nil) {
					t.Errorf("%s, HTTP/%d: %v %q", name, version, resp.Header, content)
				}
				resp.Body.Close()
			}
			if status != test.want {
				t.Errorf("%s, HTTP/%d: status %d (%v), want %d", name, version, status, err, test.want)
			}
			s.Close()
		}
	}
}

func left(r *http.Request) *http.Request {
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	return r.WithContext(ctx)
}
