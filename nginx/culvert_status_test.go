package nginx_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// The events of a configuration that is replaced end with it: a stream that continued would keep it, and show what is not served any more.
// So they do with the process.
func TestStatusFollowsReload(t *testing.T) {
	addr := wiretest.Free(t)
	site := func(upstream string) string {
		return "upstream " + upstream + " { server 127.0.0.1:1; } server { listen " + addr + "; allow all;\n" +
			"location / { proxy_pass http://" + upstream + "; } location = /status { culvert_status on; } }"
	}
	s := load(t, site("former"))
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	stream := func(upstream string) *wiretest.Peer {
		c := wiretest.Dial(t, addr)
		c.Send("GET /status?events HTTP/1.1\r\nHost: a\r\n\r\n")
		c.Header()
		for { // up to the group's name
			line, err := c.R.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, "<h2>") {
				if !strings.Contains(line, "<h2>"+upstream+" ") {
					t.Errorf("%s: %q", upstream, line)
				}
				return c
			}
		}
	}
	former := stream("former")
	s.write(site("later"))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if rest := former.Ended(); !strings.HasSuffix(rest, "\r\n0\r\n\r\n") {
		t.Errorf("the stream was cut: %q", rest)
	}
	later := stream("later")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	later.Ended()
}
