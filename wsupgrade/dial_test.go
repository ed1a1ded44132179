package wsupgrade_test

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/culvert-go/culvert/wsupgrade"
)

func TestDialledAddress(t *testing.T) {
	for target, want := range map[string]string{
		"http://app.test":           "app.test:80",
		"ws://app.test:8080/x":      "app.test:8080",
		"https://app.test":          "app.test:443",
		"wss://app.test":            "app.test:443",
		"ws://[::1]":                "[::1]:80",
		"wss://[::1]:8443":          "[::1]:8443",
		"https://app.test:80/a?b=c": "app.test:80",
	} {
		var got string
		f := forwarder(t, wsupgrade.Options{Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
			if network != "tcp" {
				t.Errorf("network %q", network)
			}
			got = addr
			return nil, errors.New("no")
		}})
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		f.Handler(u).ServeHTTP(w, request(t, handshake))
		if got != want || w.Code != 502 {
			t.Errorf("%s: dialled %q with status %d, want %q and 502", target, got, w.Code, want)
		}
	}
}
