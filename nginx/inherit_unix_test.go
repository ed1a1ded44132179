//go:build unix

package nginx_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
)

// Sockets that are handed over remain non-blocking, as os/exec takes their descriptors: a Server whose Accept blocked would not end
// before another client connects, and would lose that client's request.
func TestCloseBehindHandOver(t *testing.T) {
	address := wiretest.Free(t)
	s, err := nginx.New(write(t, "error_log stderr; events {} http { access_log off; server { listen "+address+"; return 200 ok; } }"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	files, _, err := s.HandOver()
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	defer files[0].Close()
	_ = files[0].Fd()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + address) // Accept is called anew
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Close() }()
	if err := wiretest.Await(t, ended, "end of the server"); err != nil {
		t.Error(err)
	}
}

// A Server takes a socket that is bound already, closes one that its configuration does not have, and binds the others.
func TestInheritedListeners(t *testing.T) {
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	own := wiretest.Free(t)
	o := write(t, fmt.Sprintf("error_log stderr; events {} http { access_log off; server { listen %s; listen %s; return 200 ok; } }", listeners[0].Addr(), own))
	o.Listeners = listeners
	s, err := nginx.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{listeners[0].Addr().String(), own} {
		if r, err := http.Get("http://" + address); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%s: %v", address, err)
		}
	}
	if c, err := net.Dial("tcp", listeners[1].Addr().String()); err == nil {
		c.Close()
		t.Error("the socket that is not in the configuration accepts")
	}
}
