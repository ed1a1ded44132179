package wsupgrade_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A handshake that a proxy in front has stripped is restored on the chosen path, and no other
// request is.
func TestRestore(t *testing.T) {
	leaktest.Check(t)
	restore, err := wsupgrade.Restore(func(r *http.Request) bool { return r.URL.Path == "/chat" })
	if err != nil {
		t.Fatal(err)
	}
	f := forwarder(t, wsupgrade.Options{})
	target := mirroring(t)
	addr := wiretest.Serve(t, restore(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.Protocol(r) == "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		f.Handler(&url.URL{Scheme: "http", Host: target}).ServeHTTP(w, r)
	})))
	plain := without(without(handshake, "Connection"), "Upgrade")
	for name, test := range map[string]struct {
		request string
		status  string
	}{
		"stripped":             {plain, "101"},
		"HTTP/1.0":             {strings.Replace(plain, "HTTP/1.1", "HTTP/1.0", 1), "101"},
		"Connection: close":    {with(plain, "Connection: close"), "101"},
		"whole":                {handshake, "101"},
		"another path":         {strings.Replace(plain, "/chat", "/chat/", 1), "418"},
		"POST":                 {strings.Replace(plain, "GET", "POST", 1), "418"},
		"no key":               {without(plain, "Sec-WebSocket-Key"), "418"},
		"bad key":              {strings.Replace(plain, key, "c2hvcnQ=", 1), "418"},
		"no version":           {without(plain, "Sec-WebSocket-Version"), "418"},
		"old version":          {strings.Replace(plain, "Version: 13", "Version: 8", 1), "418"},
		"with a body":          {with(plain, "Content-Length: 5") + "hello", "418"},
		"another upgrade":      {with(plain, "Connection: Upgrade", "Upgrade: h2c"), "418"},
		"an Upgrade to ignore": {with(plain, "Upgrade: websocket"), "418"},
	} {
		t.Run(name, func(t *testing.T) {
			p := wiretest.Dial(t, addr)
			p.Send(test.request)
			if header := p.Header(); !strings.HasPrefix(header, "HTTP/1.1 "+test.status+" ") && !strings.HasPrefix(header, "HTTP/1.0 "+test.status+" ") {
				t.Errorf("response %q, want %s", header, test.status)
			}
			if test.status == "101" {
				p.Send("hello")
				p.Receive("hello")
			}
		})
	}
	if f, err := wsupgrade.Restore(nil); f != nil || err == nil {
		t.Error("Restore everywhere")
	}
}
