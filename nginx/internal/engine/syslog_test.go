package engine_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// syslogd is a syslog server.
type syslogd struct {
	net.PacketConn
	t        *testing.T
	messages chan string
}

// startSyslog listens until the test ends, or until it is closed.
func startSyslog(t *testing.T, network, address string) *syslogd {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &syslogd{conn, t, make(chan string, 100)}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			s.messages <- string(buf[:n])
		}
	})
	t.Cleanup(func() {
		conn.Close()
		reading.Wait()
	})
	return s
}

// next returns the next message, with a star for its time and those in it.
func (s *syslogd) next() string {
	s.t.Helper()
	return syslogTimes.ReplaceAllString(wiretest.Await(s.t, s.messages, "message"), "*")
}

var syslogTimes = regexp.MustCompile(`(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 1-3]\d \d\d:\d\d:\d\d\b|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\b|\b\d+#\d+|\*\d+ `)

// host is this machine's name as syslog has it.
func host(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ToLower(name)
}

func TestAccessLogToSyslog(t *testing.T) {
	for network, address := range map[string]string{"udp4": "127.0.0.1:0", "udp6": "[::1]:0", "unixgram": filepath.Join(t.TempDir(), "s")} {
		t.Run(network, func(t *testing.T) {
			d := startSyslog(t, network, address)
			to := d.LocalAddr().String()
			if network == "unixgram" {
				to = "unix:" + to
			}
			s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
				log_format own '$uri "$http_user_agent"'; map $arg_log $logged { default 1; no 0; }
				access_log syslog:server=TO own;
				server {
					location / { return 200 x; }
					location /own { access_log syslog:nohostname,tag=Own_1,severity=warn,facility=kern,server=TO own if=$logged; access_log syslog:server=TO,tag= own; return 200 x; }
				}
			}`, "TO", to)})
			s.get("/a", "User-Agent: te\"st")
			equal(t, "by default", d.next(), `<190>* `+host(t)+` nginx: /a "te\x22st"`)
			s.get("/own")
			equal(t, "parameters", d.next(), `<4>* Own_1: /own "-"`)
			equal(t, "no tag", d.next(), `<190>* `+host(t)+` : /own "-"`)
			s.get("/own?log=no")
			equal(t, "not logged by one", d.next(), `<190>* `+host(t)+` : /own "-"`)
		})
	}
}

func TestErrorLogToSyslog(t *testing.T) {
	d := startSyslog(t, "udp4", "127.0.0.1:0")
	to := d.LocalAddr().String()
	s := serve(t, map[string]string{"nginx.conf": `error_log syslog:server=` + to + `,tag=main,severity=debug,facility=local0 notice;
	events {}
	http { access_log off; limit_req_zone $uri zone=z:1m rate=1r/m; server { server_name first;
		location / { root html; }
		location /limited { limit_req zone=z; limit_req_log_level warn; return 200 x; }
		location /own { error_log syslog:server=` + to + `,nohostname crit; root html; }
	} }`})
	s.get("/missing")
	missing := "* [error] *: *open() \"" + s.dir + `/html/missing" failed (2: No such file or directory), client: 127.0.0.1, server: first, request: "GET /missing HTTP/1.1", host: "localhost"`
	equal(t, "an error", d.next(), "<131>* "+host(t)+" main: "+missing)
	s.engine.Logger().Warn("a warning")
	equal(t, "a warning", d.next(), "<132>* "+host(t)+" main: * [warn] *: a warning")
	s.engine.Logger().Info("too low")
	s.get("/own") // below crit
	s.engine.Logger().Log(t.Context(), 14, "the end")
	equal(t, "above all", d.next(), "<128>* "+host(t)+" main: * [emerg] *: the end")
	if got := s.errors.String(); !strings.Contains(got, "[error]") || strings.Contains(got, "[warn]") {
		t.Errorf("what stands beside syslog, for errors and above: %q", got)
	}
	equal(t, "its name", s.engine.Settings().ErrorLog, "stderr")
	s.engine.Logger().Error(strings.Repeat("x", 5000))
	_, text, _ := strings.Cut(d.next(), " main: ")
	if got := len(text); got < 2000 || got > 2047 {
		t.Errorf("a long error has %d bytes", got)
	}
}

// If a server is not there a line is lost, which the error log reports, and no more: lines are
// sent again when it is back.
func TestSyslogServerAway(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := serve(t, server("access_log syslog:server=unix:"+socket+"; return 200 x;"))
	equal(t, "status", s.get("/1").StatusCode, 200)
	said := func(call string) string {
		return "[alert] *: " + call + " while logging to syslog, server: unix:" + socket + "\n"
	}
	equal(t, "reported", syslogTimes.ReplaceAllString(s.errors.String(), "*"), "* "+said("connect() failed (2: No such file or directory)"))
	d := startSyslog(t, "unixgram", socket)
	s.get("/2")
	if got := d.next(); !strings.Contains(got, "GET /2 ") {
		t.Errorf("got %q", got)
	}
	d.Close()
	equal(t, "status", s.get("/3").StatusCode, 200)
	if got := s.errors.String(); !strings.Contains(got, "[error] ") || !strings.Contains(got, ": send() failed (") {
		t.Errorf("the error log has %q", got)
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	d = startSyslog(t, "unixgram", socket)
	s.get("/4")
	if got := d.next(); !strings.Contains(got, "GET /4 ") {
		t.Errorf("got %q", got)
	}
}

// A lost line of an access log is reported in the log of the request.
func TestSyslogServerAwayIsReported(t *testing.T) {
	s := serve(t, server("error_log own.log warn; access_log syslog:server=unix:/nonexistent/s; return 200 x;"))
	s.get("/1")
	if got := s.file("own.log"); !strings.Contains(got, "[warn] ") || !strings.Contains(got, "send() to syslog failed while logging request, client: 127.0.0.1") {
		t.Errorf("own.log: %q", got)
	}
}

// Two error logs that can't be reached report one another once.
func TestErrorLogsAway(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `error_log syslog:server=unix:/nonexistent/a; error_log syslog:server=unix:/nonexistent/b; error_log file.log alert; events {} http { }`})
	s.engine.Logger().Error("an error")
	got := s.file("file.log")
	equal(t, "lines about a", strings.Count(got, "unix:/nonexistent/a\n"), 1)
	equal(t, "lines about b", strings.Count(got, "unix:/nonexistent/b\n"), 1)
}

// A server that reads nothing delays no request.
func TestSyslogServerFull(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenPacket("unixgram", socket) // never read
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := serve(t, server("error_log own.log warn; access_log syslog:server=unix:"+socket+"; return 200 x;"))
	client := wiretest.Dial(t, s.first)
	for range 5000 {
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		client.Status(200)
		if t.Failed() {
			return
		}
		if strings.Contains(s.file("own.log"), "send() to syslog failed") {
			return
		}
	}
	t.Error("the server took everything")
}

func TestSyslogLeavesNothing(t *testing.T) {
	leaktest.Check(t)
	d := startSyslog(t, "udp4", "127.0.0.1:0")
	s, err := load(t, map[string]string{"nginx.conf": "error_log syslog:server=" + d.LocalAddr().String() + "; events {}"})
	if err != nil {
		t.Fatal(err)
	}
	s.engine.Logger().Error("one")
	d.next()
	if err := s.engine.Close(); err != nil {
		t.Fatal(err)
	}
	s.engine.Logger().Error("after the end")
	probe, err := net.Dial("udp4", d.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	fmt.Fprint(probe, "behind it")
	equal(t, "next", d.next(), "behind it")
}

// A message has the local time, as RFC 3164 writes it.
func TestSyslogTime(t *testing.T) {
	d := startSyslog(t, "udp4", "127.0.0.1:0")
	s := serve(t, server("access_log syslog:server="+d.LocalAddr().String()+",nohostname; return 200 x;"))
	before := time.Now().Truncate(time.Second)
	s.get("/")
	text := wiretest.Await(t, d.messages, "message")
	at, err := time.ParseInLocation(time.Stamp, text[len("<190>"):len("<190>")+len(time.Stamp)], time.Local)
	if err != nil {
		t.Fatal(err)
	}
	at = at.AddDate(before.Year(), 0, 0)
	if at.Before(before) || at.After(time.Now()) {
		t.Errorf("%q is of %v", text, at)
	}
}
