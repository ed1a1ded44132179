package wsupgrade_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// TestPanicBesideAnUnsentBody: after a panic net/http's server reads more of the request's body
// before it closes the connection. A client that sends nothing of it does not hold the connection.
func TestPanicBesideAnUnsentBody(t *testing.T) {
	allowed := func(*http.Request) (string, error) { return "192.0.2.1:80", nil }
	bug := func() { panic("a bug") }
	for name, test := range map[string]struct {
		o       wsupgrade.Options
		allow   func(*http.Request) (string, error)
		connect bool
	}{
		"allow": {allow: func(*http.Request) (string, error) { bug(); return "", nil }, connect: true},
		"Dial of a CONNECT": {o: wsupgrade.Options{Dial: func(context.Context, string, string) (net.Conn, error) { bug(); return nil, nil }},
			allow: allowed, connect: true},
		"an aborted CONNECT": {o: wsupgrade.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &culvert.Error{Kind: culvert.ClientGone, Err: errors.New("left")}
		}}, allow: allowed, connect: true},
		"Dial":        {o: wsupgrade.Options{Dial: func(context.Context, string, string) (net.Conn, error) { bug(); return nil, nil }}},
		"CheckOrigin": {o: wsupgrade.Options{CheckOrigin: func(*http.Request) bool { bug(); return true }}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				test.o.Protocols = []string{"tcp", "websocket"}
				f, err := wsupgrade.New(test.o)
				if err != nil {
					t.Fatal(err)
				}
				if !test.connect {
					wiretest.Unsent(t, f.Handler(&url.URL{Scheme: "http", Host: "192.0.2.1"}),
						"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nOrigin: http://b\r\nContent-Length: 10\r\n\r\n")
					return
				}
				h, err := f.Connect(test.allow)
				if err != nil {
					t.Fatal(err)
				}
				wiretest.Unsent(t, h, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 10\r\n\r\n")
			})
		})
	}
}
