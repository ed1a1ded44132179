package response_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// foreign has the methods of net/http's writer, and could read the body in ReadFrom.
type foreign struct{ http.ResponseWriter }

func (foreign) ReadFrom(io.Reader) (int64, error)            { return 0, nil }
func (foreign) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// Plain is true only for net/http's own writer.
func TestPlain(t *testing.T) {
	leaktest.Check(t)
	plain := make(chan bool, 3)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain <- response.Plain(w)
		plain <- response.Plain(foreign{w})
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain <- response.Plain(w) }), foreign{w}, r, &response.Hooks{})
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(200)
	for i, want := range []bool{true, false, false} {
		if got := wiretest.Await(t, plain, "result"); got != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
}
