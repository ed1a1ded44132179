package wsupgrade_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A connection of Dial that is encrypted itself, up to a proxy for instance, is not one with TLS to the target. That of DialTLS is.
func TestDialTLS(t *testing.T) {
	leaktest.Check(t)
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	seen := make(chan byte, 1)
	addr := wiretest.Target(t, func(p *wiretest.Peer) {
		c := tls.Server(p.Conn, &tls.Config{Certificates: certified.TLS.Certificates})
		first := make([]byte, 1)
		_, _ = io.ReadFull(c, first)
		seen <- first[0]
	})
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, network, addr)
	}
	none := func(context.Context, string, string) (net.Conn, error) {
		t.Error("the other function is called")
		return nil, io.EOF
	}
	for _, test := range []struct {
		url  string
		o    wsupgrade.Options
		want byte
	}{
		{"https://app.test", wsupgrade.Options{Dial: dial}, 0x16}, // a handshake
		{"wss://app.test", wsupgrade.Options{Dial: none, DialTLS: dial}, 'G'},
		{"http://app.test", wsupgrade.Options{Dial: dial, DialTLS: none}, 'G'},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		forwarder(t, test.o).Handler(u).ServeHTTP(w, request(t, handshake))
		if got := wiretest.Await(t, seen, "a byte"); got != test.want || w.Code != 502 {
			t.Errorf("%s: status %d, and the target got %#x first, want %#x", test.url, w.Code, got, test.want)
		}
	}
}

// What Dial fails with by itself is the failure of the upgrade, with its Retry-After.
func TestDialFails(t *testing.T) {
	u := &url.URL{Scheme: "http", Host: "app.test"}
	dial := func(context.Context, string, string) (net.Conn, error) {
		return nil, fmt.Errorf("no tunnel: %w", &culvert.Error{Kind: culvert.Busy, RetryAfter: 3 * time.Second})
	}
	w := httptest.NewRecorder()
	if forwarder(t, wsupgrade.Options{Dial: dial}).Handler(u).ServeHTTP(w, request(t, handshake)); w.Code != 503 || w.Header().Get("Retry-After") != "3" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
}
