package filters_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A client that does not read a refusal holds its connection for a limited time, also if the server has no
// WriteTimeout. A WriteTimeout of the server is not changed.
func TestRefusalThatIsNotAccepted(t *testing.T) {
	limit, err := filters.BodyLimit(3)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter  culvert.Filter
		request string
	}{
		"RefuseAmbiguous": {filters.RefuseAmbiguous(filters.EmptySegments), "GET /a//b HTTP/1.1\r\nHost: a\r\n\r\n"},
		"BodyLimit":       {limit, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wiretest.NotAccepted(t, test.filter(http.NotFoundHandler()), test.request)
			})
		})
	}
	for name, test := range map[string]struct {
		timeout time.Duration
		want    int
	}{"the server has none": {0, 1}, "the server's own": {time.Second, 0}} {
		t.Run("over HTTP/2, "+name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(nil)
			w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
			s.Config.Handler = http.HandlerFunc(func(under http.ResponseWriter, r *http.Request) {
				r.ContentLength = 4
				limit(http.NotFoundHandler()).ServeHTTP(w, r)
			})
			s.Config.WriteTimeout = test.timeout
			s.EnableHTTP2 = true
			wiretest.StartTLS(s)
			defer s.Close()
			if resp, err := s.Client().Get(s.URL); err != nil {
				t.Error(err)
			} else {
				resp.Body.Close()
			}
			if len(w.set) != test.want || test.want > 0 && time.Until(w.set[0]) > 2*time.Minute {
				t.Errorf("deadlines %v, want %d", w.set, test.want)
			}
		})
	}
}

// deadlineWriter records the deadlines of writes.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	w.set = append(w.set, t)
	return nil
}
