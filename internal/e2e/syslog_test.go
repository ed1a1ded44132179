package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// syslogConf has error logs of a level at which nginx says nothing of itself.
const syslogConf = `error_log syslog:server={{UDP}},tag=main_1,severity=debug error;
events {}
http { log_format own '$uri [$arg_a] "$http_user_agent" $status';
  map $arg_log $logged { default 1; no 0; }
  access_log syslog:server={{UDP}} own;
  server { listen {{LISTEN}}; root html; server_name first;
    location / { return 200 x; }
    location /combined { access_log syslog:server={{UDP}}; return 200 x; }
    location /options { access_log syslog:facility=auth,severity=crit,nohostname,tag=A_z0,server={{UDP}} own if=$logged; return 200 x; }
    location /unix { access_log syslog:server=unix:{{UNIX}},tag= own; return 200 x; }
    location /udp6 { access_log syslog:server={{UDP6}},facility=intern,severity=emerg own; return 200 x; }
    location /two { access_log syslog:server={{UDP}} own; access_log syslog:server={{UDP}},tag=two own; return 200 x; }
    location /missing { access_log off; }
    location /error { access_log off; error_log syslog:server={{UDP}},facility=cron,nohostname; error_log error2.log; }
    location /crit { access_log off; error_log syslog:server={{UDP}} crit; }
    location /long { access_log off; }
    location /away { access_log syslog:server=unix:{{DIR}}/none own; return 200 x; }
    location /away2 { error_log away.log warn; access_log syslog:server=unix:{{DIR}}/none own; return 200 x; }
  } }
`

// syslogVolatile are the parts of a message that differ from run to run.
var syslogVolatile = regexp.MustCompile(`[A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d\b|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\b|\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}|\b\d+#\d+: |\*\d+ `)

// loggingToSyslog is what an nginx that is newer than Debian's says of a failure, too.
var loggingToSyslog = regexp.MustCompile(` while logging to syslog, server: .*`)

// TestSyslogAsNginx: the messages that come to syslog servers, byte for byte.
func TestSyslogAsNginx(t *testing.T) {
	sameOnBoth(t, startNginx, func(t *testing.T, start starter) (lines []string) {
		socket := filepath.Join(t.TempDir(), "s")
		messages := make(chan string, 100)
		conf := strings.NewReplacer("{{UDP}}", listenSyslog(t, "udp4", "127.0.0.1:0", messages), "{{UDP6}}", listenSyslog(t, "udp6", "[::1]:0", messages),
			"{{UNIX}}", listenSyslog(t, "unixgram", socket, messages)).Replace(syslogConf)
		h := &holding{t: t, server: start(t, conf, nil)}
		for _, step := range []struct {
			target   string
			messages int
		}{
			{"/a?a=x", 1}, {"/combined", 1}, {"/options?a=%22", 1}, {"/options?log=no", 0}, {"/unix?a=\\", 1}, {"/udp6", 1}, {"/two", 2}, {"/missing", 1}, {"/error", 1}, {"/crit", 0},
			{"/long" + strings.Repeat("g", 3000), 1}, {"/away", 1}, {"/away2", 1}, {"/last", 1},
		} {
			_, status := h.get(step.target)
			lines = append(lines, fmt.Sprint(step.target, " ", status))
			for range step.messages {
				text := wiretest.Await(t, messages, "message of "+step.target)
				if _, message, _ := strings.Cut(text, ": "); len(message) > 1000 {
					lines = append(lines, fmt.Sprint(len(message), " bytes"))
					text = text[:500] // times and numbers decide where the end is
				}
				text = loggingToSyslog.ReplaceAllString(syslogVolatile.ReplaceAllString(text, "*"), "")
				lines = append(lines, strings.ReplaceAll(text, h.dir, "DIR"))
			}
		}
		for _, line := range append(h.said("error2.log", "failed"), h.said("away.log", "syslog")...) {
			lines = append(lines, strings.ReplaceAll(line, h.dir, "DIR"))
		}
		return lines
	})
}

// get requests a target over a connection of its own.
func (h *holding) get(target string) (body string, status int) {
	h.t.Helper()
	c := h.connect("")
	h.send(c, "GET "+target+" HTTP/1.1\r\nHost: first\r\nUser-Agent: a\"\xc3\xa9\r\n\r\n")
	got := h.next(c, "GET")
	return got.Body, got.Status
}

// listenSyslog listens until the test ends.
func listenSyslog(t *testing.T, network, address string, messages chan<- string) string {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			messages <- string(buf[:n])
		}
	})
	t.Cleanup(func() {
		conn.Close()
		reading.Wait()
	})
	return conn.LocalAddr().String()
}
