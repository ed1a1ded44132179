package engine_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

// auth_delay has a 401 wait, for as long as the client does, and nothing else.
func TestAuthDelay(t *testing.T) {
	s := serve(t, with(map[string]string{"nginx.conf": `error_log error.log info; events {} http { log_format s $status; access_log access.log s;
		server { location / { auth_delay 1h; auth_basic x; auth_basic_user_file users; return 200; root html; }
			location /closed { auth_delay 1h; auth_basic x; auth_basic_user_file users; root html; }
			location /short { auth_delay 1ms; auth_basic x; auth_basic_user_file users; root html; }
			location /denied { auth_delay 1h; deny all; } } }`}, "users", "u:{PLAIN}p\n", "html/closed/a", "a"))
	const good, bad = "Authorization: Basic dTpw", "Authorization: Basic dTp4"
	equal(t, "good", s.get("/closed/a", good).StatusCode, 200)
	equal(t, "denied", s.get("/denied").StatusCode, 403)
	equal(t, "short", s.get("/short", bad).StatusCode, 401)
	before := len(s.file("error.log"))
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET /closed/a HTTP/1.1\r\nHost: a\r\n"+bad+"\r\n\r\n")
	eventually(t, func() string {
		if log := s.file("error.log")[before:]; strings.Contains(log, "delaying unauthorized request") {
			return log
		}
		return ""
	})
	equal(t, "logged before", s.file("access.log"), "200\n403\n401\n")
	conn.Close()
	eventually(t, func() string { return s.file("access.log")[len("200\n403\n401\n"):] })
}

// log_subrequest logs the requests that the server makes of itself, by the log of their location.
func TestLogSubrequest(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http { log_format s "$uri $status"; access_log access.log s;
		server { root html;
			location / { auth_request /allowed; return 200; }
			location /allowed { return 204; }
			location /logged/ { auth_request /check; root html; }
			location /check { log_subrequest on; access_log sub.log s; return 403; } } }`})
	equal(t, "refused", s.get("/logged/").StatusCode, 403)
	equal(t, "sub.log", s.file("sub.log"), "/check 403\n")
	equal(t, "access.log", s.file("access.log"), "/logged/ 403\n")
}

// What gunzip decompresses for some clients varies for all.
func TestGunzipVaries(t *testing.T) {
	s := serve(t, with(server(`root html; gunzip on; location /zipped { gzip_static always; } location /plain { }`), "html/zipped.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00", "html/plain", "p"))
	for _, encoding := range []string{"Accept-Encoding: gzip", "Accept: a"} {
		equal(t, "Vary with "+encoding, s.get("/zipped", encoding).Header.Get("Vary"), "Accept-Encoding")
	}
	equal(t, "Vary of others", s.get("/plain").Header.Get("Vary"), "")
}
