package server

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// Each kind of refusal closes the connection, and the hook is called once, though more requests follow. What is refused
// in a header section is tested where that is parsed.
func TestRefusals(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a\r\n"
	for _, c := range []struct {
		raw    string
		status int
		line   string
	}{
		{"nonsense\r\n\r\n", 400, "nonsense"},
		{"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "GET /%zz HTTP/1.1"},
		{"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400, "GET a HTTP/1.1"},
		{get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "GET / HTTP/1.1"},
		{"GET /" + strings.Repeat("a", 6000) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "GET /" + strings.Repeat("a", 4<<10-len("GET /"))},
		{get + "Expect: more\r\n\r\n", 417, "GET / HTTP/1.1"},
		{"GET /" + strings.Repeat("a", 4500) + " HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417, "GET /" + strings.Repeat("a", 4<<10-len("GET /"))},
		{get + "X: " + strings.Repeat("a", 6000) + "\r\n\r\n", 431, "GET / HTTP/1.1"},
		{get + "Transfer-Encoding: gzip\r\n\r\n", 501, "GET / HTTP/1.1"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "PRI * HTTP/2.0"},
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			refused := make(chan *Refusal, 10)
			s := handler(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
			s.MaxHeaderBytes, s.OnRefused = 5000, func(r *Refusal) { refused <- r }
			p := wiretest.Dial(t, start(t, s))
			p.Send(c.raw + get + "\r\nnonsense\r\n\r\n")
			p.End()
			resp, body := p.Response("GET")
			if resp.StatusCode != c.status || !resp.Close || !strings.HasPrefix(body, resp.Status) {
				t.Errorf("response %s, close %v, %q", resp.Status, resp.Close, body)
			}
			r := wiretest.Await(t, refused, "refusal")
			if r.Status != c.status || r.Line != c.line || r.RemoteAddr != p.LocalAddr().String() || r.Err == nil {
				t.Errorf("refusal %+v", r)
			}
			if rest := p.Ended(); rest != "" || len(refused) > 0 {
				t.Errorf("rest %q, %d more refusals", rest, len(refused))
			}
		})
	}
}

// A client that sends a long request whose header is refused can read the response: the connection is not reset under it.
func TestRefusedClientReadsItsResponse(t *testing.T) {
	p := wiretest.Dial(t, start(t, handler(func(http.ResponseWriter, *http.Request) {})))
	p.Send("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("a", 8<<20))
	p.Status(http.StatusBadRequest)
	p.Close()
}
