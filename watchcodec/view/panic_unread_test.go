package view_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// TestPanicBesideAnUnsentBody: after a panic net/http's server reads the rest of the request's body
// before it closes the connection. A client that sends nothing of the body does not hold the
// connection.
func TestPanicBesideAnUnsentBody(t *testing.T) {
	painted := func(p view.Renderer) func(*http.Request, watchcodec.Request) view.Renderer {
		return func(*http.Request, watchcodec.Request) view.Renderer { return p }
	}
	for name, o := range map[string]view.Options{
		"Renderer":  {Renderer: func(*http.Request, watchcodec.Request) view.Renderer { panic("a bug") }},
		"Caller":    {Renderer: painted(newPaint()), Caller: func(*http.Request) string { panic("a bug") }},
		"Subscribe": {Renderer: painted(&panicky{paint: newPaint(), in: "Subscribe"})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				views, err := view.New(o)
				if err != nil {
					t.Fatal(err)
				}
				defer views.Close()
				wiretest.Unsent(t, views.Filter(newServer(t, false)), "GET "+collectionPath+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
			})
		})
	}
}
