package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A connection that ends behind a response, or within one, is not reset if the client has sent the next request: it would
// lose what it has not read yet, earlier responses perhaps (RFC 9112 section 9.6).
func TestUnreadRequestResetsNothing(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	flushed := func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, "part")
		w.(http.Flusher).Flush()
	}
	for name, end := range map[string]func(s *Server, w http.ResponseWriter){
		"panic": func(*Server, http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"panic within the response": func(_ *Server, w http.ResponseWriter) {
			flushed(w)
			panic(http.ErrAbortHandler)
		},
		"short response": func(_ *Server, w http.ResponseWriter) {
			w.Header().Set("Content-Length", "5")
			flushed(w)
		},
		"close": func(_ *Server, w http.ResponseWriter) { w.Header().Set("Connection", "close") },
		"no keep-alives behind the header": func(s *Server, w http.ResponseWriter) {
			flushed(w)
			s.SetKeepAlivesEnabled(false)
		},
	} {
		for _, pipelined := range []bool{true, false} { // more than the server's buffer takes, or while it is empty
			entered, sent := make(chan bool, 1), make(chan bool)
			s := &Server{}
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				entered <- true
				<-sent
				end(s, w)
			})
			p := wiretest.Dial(t, start(t, s))
			if pipelined {
				p.Send(strings.Repeat(request, readBuffer/10))
				<-entered
			} else {
				p.Send(request)
				<-entered
				p.Send(request)
			}
			close(sent)
			if rest, err := io.ReadAll(p.R); err != nil {
				t.Errorf("%s, pipelined: %v: %v behind %q", name, pipelined, err, rest)
			}
			p.Close()
		}
	}
}
