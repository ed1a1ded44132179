package engine_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client that reads nothing of a file does not hold it for ever: send_timeout bounds the wait. Its response is cut, and the
// connection ends.
func TestSendTimeoutOfAFile(t *testing.T) {
	for _, fields := range []string{"", "Range: bytes=1-\r\n", "Range: bytes=0-9,20-\r\n"} {
		s := serve(t, map[string]string{"large": "", "nginx.conf": `events {} http { log_format s $status; access_log s.log s;
			server { root .; send_timeout 50ms; } }`})
		const size = 256 << 20
		if err := os.Truncate(filepath.Join(s.dir, "large"), size); err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", s.first)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /large HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n"); err != nil {
			t.Fatal(err)
		}
		if logged := eventually(t, func() string { return s.file("s.log") }); !strings.HasPrefix(logged, "20") {
			t.Errorf("logged %q", logged)
		}
		if n, err := io.Copy(io.Discard, conn); n >= size {
			t.Errorf("received %d bytes, %v", n, err)
		}
	}
}
