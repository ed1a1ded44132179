package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const stubStatusConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}};
  location = /status { stub_status; }
  location = /variables { return 200 "$connections_active $connections_reading $connections_writing $connections_waiting"; }
  location / { proxy_pass {{UP}}; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; } } }
`

// statusReader requests the counts over one connection.
type statusReader struct {
	*holding
	over  *conversation
	reads int
}

var statusText = regexp.MustCompile(`^Active connections: (\d+) \nserver accepts handled requests\n (\d+) (\d+) (\d+) \nReading: (\d+) Writing: (\d+) Waiting: (\d+) \n$`)

// read returns the numbers in their order; the requests are those that are not its own.
func (s *statusReader) read() string {
	s.t.Helper()
	s.send(s.over, get("/status"))
	s.reads++
	found := statusText.FindStringSubmatch(s.next(s.over, "GET").Body)
	if found == nil {
		s.t.Fatal("not a status")
	}
	var requests int
	fmt.Sscan(found[4], &requests)
	found[4] = fmt.Sprint(requests - s.reads)
	return strings.Join(found[1:], " ")
}

// tells waits until the counts are these: a server learns of connections when it looks.
func (s *statusReader) tells(what, want string) {
	s.t.Helper()
	var got string
	defer func() {
		if got != want {
			s.t.Errorf("%s: %s, want %s", what, got, want)
		}
	}()
	waitFor(s.t, what, func() bool { got = s.read(); return got == want })
}

// TestStubStatusAsNginx: both count the same for the same connections.
func TestStubStatusAsNginx(t *testing.T) {
	for name, start := range map[string]starter{"nginx": startNginx, "culvert": startCulvert} {
		t.Run(name, func(t *testing.T) {
			h, _ := startHolding(t, start, stubStatusConf)
			s := &statusReader{holding: h, over: h.connect("")}
			s.tells("one connection beside the one that looked whether it listens", "1 2 2 0 0 1 0")
			idle := h.connect("")
			s.tells("a silent one", "2 3 3 0 0 1 1")
			h.send(idle, get("/held"))
			<-h.arrived
			s.tells("a request that runs", "2 3 3 1 0 2 0")
			s.send(s.over, get("/variables"))
			s.reads++
			if got := s.next(s.over, "GET").Body; got != "2 0 2 0" {
				t.Errorf("the variables: %s", got)
			}
			h.release <- struct{}{}
			h.next(idle, "GET")
			s.tells("one that waits for its next request", "2 3 3 1 0 1 1")
			h.send(idle, get("/1")+get("/2"))
			h.next(idle, "GET")
			h.next(idle, "GET")
			s.tells("two at once", "2 3 3 3 0 1 1")
			exchange(t, h.address, "", "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "GET")
			s.tells("one that was refused", "2 4 4 4 0 1 1")
			h.connect("").Close()
			s.tells("one that went again", "2 5 5 4 0 1 1")
			exchange(t, h.address, "", "HEAD /status HTTP/1.0\r\n\r\n", "HEAD")
			s.tells("HTTP/1.0", "2 6 6 5 0 1 1")
			begun := h.connect("")
			h.send(begun, "GET / HTTP/1.1\r\nHost:")
			s.tells("half a head", "3 7 7 6 1 1 1")
			h.send(begun, " a\r\n\r\n")
			h.next(begun, "GET")
			s.tells("a whole head", "3 7 7 6 0 1 2")
			tunnel := h.connect("")
			h.send(tunnel, strings.TrimSuffix(webSocketRequest("/tunnel"), webSocketFrame))
			if _, err := tunnel.r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			s.tells("a tunnel", "4 8 8 7 0 2 2")
			tunnel.Close()
			s.tells("its end", "3 8 8 7 0 1 2")
		})
	}
}

// TestStubStatusResponses: the responses to each method.
func TestStubStatusResponses(t *testing.T) {
	sameOnBoth(t, startNginx, func(t *testing.T, start starter) (lines []string) {
		h, _ := startHolding(t, start, stubStatusConf)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			for _, a := range exchange(t, h.address, "", request(method, "/status", "", "Content-Length: 0"), method) {
				lines = append(lines, fmt.Sprintf("%s: %d %q %q close=%v", method, a.Status, a.Fields["Content-Type"], a.Fields["Allow"], a.Close))
			}
		}
		return lines
	})
}
