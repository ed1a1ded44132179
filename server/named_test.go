package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A header is written in the order of its format, the server's own fields at their places among the handler's.
func TestHeaderFormat(t *testing.T) {
	const date = "Sat, 28 Nov 2026 00:00:00 GMT"
	names := func(list string) fieldnames.List { return strings.Fields(list) }
	reason := strings.Repeat("long ", 80) + "reason"
	for name, c := range map[string]struct {
		format  fieldnames.Format
		header  http.Header
		request string // has further lines of the request
		flushed bool   // the header is sent before the body's end is known
		want    string
	}{
		"all in place": {
			format: fieldnames.Format{Names: names("X-b Date content-length ETag connection x-A")},
			header: http.Header{"Etag": {"e"}, "X-B": {"1", "2"}, "X-A": {"3"}, "Date": {date}, "Content-Type": {"t"}, "Connection": {"x"}},
			want:   "200 OK\r\nX-b: 1\r\nX-b: 2\r\nDate: " + date + "\r\nContent-Length: 2\r\nETag: e\r\nConnection: x\r\nx-A: 3\r\nContent-Type: t",
		},
		"without a date among the others": {
			format: fieldnames.Format{Names: names("X-A etag")},
			header: http.Header{"X-A": {"3"}, "Etag": {"e"}, "Alpha": {"1"}, "date": {date}, "Date": nil, "Content-Type": nil},
			want:   "200 OK\r\nContent-Length: 2\r\nX-A: 3\r\netag: e\r\nAlpha: 1\r\ndate: " + date,
		},
		"without places": {
			format:  fieldnames.Format{Names: names("X-A")},
			header:  http.Header{"X-A": {"3"}, "Date": {date}, "Content-Length": {"2"}},
			request: "Connection: close\r\n",
			want:    "200 OK\r\nContent-Length: 2\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nX-A: 3\r\nDate: " + date,
		},
		"chunked in the place of a length": {
			format:  fieldnames.Format{Names: names("Content-Length X-A Content-Type")},
			header:  http.Header{"X-A": {"3"}, "Date": nil},
			flushed: true,
			want:    "200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 3\r\nContent-Type: text/plain; charset=utf-8",
		},
		"chunked in its own place": {
			format:  fieldnames.Format{Names: names("Content-Length X-A Transfer-Encoding")},
			header:  http.Header{"X-A": {"3"}, "Date": nil, "Content-Type": nil},
			flushed: true,
			want:    "200 OK\r\nX-A: 3\r\nTransfer-Encoding: chunked",
		},
		"a length in the place of chunked": {
			format: fieldnames.Format{Names: names("X-A Transfer-Encoding X-B")},
			header: http.Header{"X-A": {"3"}, "X-B": {"4"}, "Date": nil, "Content-Type": nil},
			want:   "200 OK\r\nX-A: 3\r\nContent-Length: 2\r\nX-B: 4",
		},
		"kept, as it says": {
			format: fieldnames.Format{Names: names("Connection Keep-Alive"), Explicit: true, Unmeasured: true},
			header: http.Header{"Keep-Alive": {"timeout=1"}, "Date": nil, "Content-Type": nil, "Content-Length": {"2"}},
			want:   "200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=1",
		},
		"closed, as it says": {
			format:  fieldnames.Format{Names: names("keep-alive X-A Connection"), Explicit: true},
			header:  http.Header{"Keep-Alive": {"timeout=1"}, "X-A": {"3"}, "Date": nil, "Content-Type": nil},
			request: "Connection: close\r\n",
			want:    "200 OK\r\nContent-Length: 2\r\nX-A: 3\r\nConnection: close",
		},
		"longer than its room": {
			format: fieldnames.Format{Names: names("X-A"), Status: "200 " + reason},
			header: http.Header{"X-A": {"3"}, "Date": nil, "Content-Type": nil},
			want:   "200 " + reason + "\r\nContent-Length: 2\r\nX-A: 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := start(t, handler(func(w http.ResponseWriter, _ *http.Request) {
				for key, values := range c.header {
					w.Header()[key] = values
				}
				clientside.FormatHeader(w, c.format)
				w.WriteHeader(http.StatusOK)
				w.Header().Set("X-Late", "is not sent")
				if c.flushed {
					_, _ = w.Write([]byte("o"))
					w.(http.Flusher).Flush()
					_, _ = w.Write([]byte("k"))
					return
				}
				_, _ = w.Write([]byte("ok"))
			}))
			p := wiretest.Dial(t, addr)
			p.Send("GET / HTTP/1.1\r\nHost: a\r\n" + c.request + "\r\n")
			header := p.Header()
			if want := "HTTP/1.1 " + c.want + "\r\n\r\n"; header != want {
				t.Errorf("%q, want %q", header, want)
			}
			if strings.Contains(header, "chunked") {
				p.Receive("1\r\no\r\n1\r\nk\r\n0\r\n\r\n")
			} else {
				p.Receive("ok")
			}
		})
	}
}
