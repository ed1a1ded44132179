package proxy_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client that does not take an interim response holds its exchange no longer than WriteTimeout, and the
// deadline is not met by the response that follows a long time later.
func TestTimeOfAnInterimResponse(t *testing.T) { onPaths(t, testTimeOfAnInterimResponse) }
func testTimeOfAnInterimResponse(t *testing.T, via path) {
	for name, test := range map[string]struct {
		pause time.Duration // before the client reads
		want  string        // how what it reads begins
	}{
		"a client that reads":  {0, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n"},
		"one that does not":    {time.Hour, ""},
		"one that is too slow": {2 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, HeaderTimeout: time.Hour, DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go hintLate(far)
					return near, nil
				}}, "192.0.2.1:80")
				p := newProxy(t, via, proxy.Options{Upstream: group, WriteTimeout: time.Second})
				near, far := net.Pipe()
				l := wiretest.OneConn(far)
				s := wiretest.Server(&http.Server{Handler: p})
				go func() { _ = s.Serve(l) }()
				if _, err := near.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.pause)
				got := make([]byte, len(test.want)+1)
				_ = near.SetReadDeadline(time.Now().Add(10 * time.Minute))
				n := 0
				for n < len(test.want) {
					m, err := near.Read(got[n:len(test.want)])
					if n += m; err != nil {
						break
					}
				}
				if string(got[:n]) != test.want {
					t.Errorf("read %q, want %q", got[:n], test.want)
				}
				if n, err := near.Read(got); test.want == "" && n > 0 {
					t.Errorf("then %q, %v", got[:n], err)
				}
				near.Close()
				_ = s.Close()
				_ = p.Drain(context.Background())
				_ = group.Close()
				time.Sleep(10 * time.Minute) // the target ends
			})
		})
	}
}

// hintLate responds to a request with an interim response, and five minutes later with a final one.
func hintLate(c net.Conn) {
	defer c.Close()
	if _, err := c.Read(make([]byte, 1<<10)); err != nil {
		return
	}
	if _, err := c.Write([]byte("HTTP/1.1 103 Early Hints\r\n\r\n")); err != nil {
		return
	}
	time.Sleep(5 * time.Minute)
	_, _ = c.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
}
