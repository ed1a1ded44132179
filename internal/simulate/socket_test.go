package simulate

import (
	"context"
	"io"
	"testing"
	"time"
)

// HeaderTimeout is checked from the end of a request without a body, of any method. A client may take long to send a body.
func TestTimeOfATargetsHeader(t *testing.T) {
	for request, bounded := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                               true,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n":         true,
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n":          false,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n": false,
	} {
		for _, silent := range []time.Duration{5 * time.Second, 8 * time.Second} {
			j := inBubble(t, mostSeconds, func(j *Journal) {
				link := Link{Delay: 10 * time.Millisecond, Window: 1 << 10}
				n := NewNetwork(new(Tally))
				listener := n.Listen("10.0.0.1:80", 1)
				conn, err := n.connect(context.Background(), "192.0.2.2", "10.0.0.1:80", Dialling{}, link, link)
				if err != nil {
					t.Error(err)
					return
				}
				target, err := listener.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				g := GatewayPlan{HeaderTimeout: 5 * time.Second, TargetWrite: time.Minute}
				s := &socket{Conn: conn, gateway: &gateway{plan: &Plan{Gateway: g}, journal: j}}
				_, _ = io.WriteString(s, request)
				time.Sleep(silent)
				_, _ = io.WriteString(target, "HTTP/1.1 204 No Content\r\n\r\n")
				_, _ = s.Read(make([]byte, 1<<10))
				conn.Reset()
				listener.Close()
			})
			if late := bounded && silent > 6*time.Second; late != (len(j.broken) == 1) {
				t.Errorf("%q, a response after %v: %v", request, silent, j.broken)
			}
		}
	}
}
