package nginx_test

import (
	"net"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A socket for all addresses responds from the one that the client has sent to.
func TestStreamUDPWildcard(t *testing.T) {
	addr := wiretest.Free(t)
	_, port, _ := net.SplitHostPort(addr)
	stream(t, `server { listen `+port+` udp; return "$server_addr"; }`)
	for _, ip := range []string{"127.0.0.1", "127.0.0.2"} {
		c := dialUDP(t, net.JoinHostPort(ip, port)) // which receives from that address alone
		c.send("1")
		if got := c.receive(); got != ip {
			t.Errorf("received %q, want %q", got, ip)
		}
	}
}
