package engine_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientside"
)

func init() { bufpool.Poison = true } // so that each use of a request shows that has ended

// lender is the writer of a server that uses requests again. It counts the calls of Hold.
type lender struct {
	http.ResponseWriter
	holds *int
}

func (l lender) Hold()             { *l.holds++ }
func (lender) Memory() []string    { return nil }
func (lender) WriteContinue()      {}
func (lender) CloseAfterResponse() {}

// A server may use the memory of requests again, but not where a copy of the request may be used behind its handler, or a
// function is called with the request of a failure.
func TestHolds(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer target.Close()
	s, err := load(t, map[string]string{"f": "file", "nginx.conf": `events {} http { access_log a.log; gzip on;
		map $uri $m { default x; }
		server {
			root .;
			location = /return { return 200 $m; }
			location = /f { add_header X-Map $m; }
			location = /missing { error_page 404 = /f; }
			location = /proxied { proxy_pass ` + target.URL + `; proxy_set_header X-Map $m; }
			location = /mirror { mirror /return; try_files /f =404; }
			location = /allowed { auth_request /return; try_files /f =404; }
			location = /down { proxy_pass http://127.0.0.1:1; }
		} }`})
	if err != nil {
		t.Fatal(err)
	}
	handler := s.engine.Listeners()[0].Handler
	if !clientside.Returns(handler) {
		t.Error("a server can't use requests again")
	}
	get := func(path string) (held bool) {
		holds := 0
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		handler.ServeHTTP(lender{httptest.NewRecorder(), &holds}, r)
		return holds > 0
	}
	get("/proxied") // it dials
	for paths, want := range map[string]bool{"/return /f /missing /none /proxied": false, "/mirror /allowed /down": true} {
		for path := range strings.SplitSeq(paths, " ") {
			if got := get(path); got != want {
				t.Errorf("%s is held: %v, want %v", path, got, want)
			}
		}
	}
}
