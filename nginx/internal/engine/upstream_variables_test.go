package engine_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// add_header and maps have the upstream's variables, as the log has. The time of the whole
// response is empty until the response has been received.
func TestUpstreamVariablesInHeaders(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(backend.Close)
	up := backend.Listener.Addr().String()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		map $upstream_status $teapot { "502, 418" yes; default no; }
		log_format up "$upstream_addr $upstream_status $upstream_header_time $upstream_response_time"; access_log up.log up;
		upstream group { server ` + dead + ` max_fails=0; server ` + up + ` backup; }
		server { location / { proxy_pass http://group; add_header X-Up "$upstream_addr $upstream_status $upstream_header_time $upstream_response_time $teapot" always; } } }`})
	addrs := regexp.QuoteMeta(dead + ", " + up)
	const time = `\d\.\d{3}`
	if got := s.get("/").Header.Get("X-Up"); !regexp.MustCompile("^" + addrs + " 502, 418 -, " + time + " " + time + ", - yes$").MatchString(got) {
		t.Errorf("the header has %q", got)
	}
	if got := s.file("up.log"); !regexp.MustCompile("^" + addrs + " 502, 418 -, " + time + " " + time + ", " + time + "\n$").MatchString(got) {
		t.Errorf("the log has %q", got)
	}
}

// Where a server fails and no other is live, the upstream itself is the last attempt.
func TestNoOtherServerLive(t *testing.T) {
	backend := func(broken func(path string) bool) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken(r.URL.Path) {
				panic(http.ErrAbortHandler)
			}
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	a := backend(func(path string) bool { return path == "/busy" })
	b := backend(func(string) bool { return true })
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("A", a, "B", b).Replace(
		`error_log stderr; events {} http { upstream u { server A; server B; } upstream one { server A; } server { add_header X-To "$upstream_addr $upstream_status" always;
			location / { proxy_pass http://u; } location /one/ { proxy_pass http://one/; } } }`)})
	for _, step := range []struct{ method, target, want string }{
		{"GET", "/", a + " 200"},
		{"GET", "/", b + ", " + a + " 502, 200"},
		{"GET", "/busy", a + ", u 502, 502"},
		{"POST", "/busy", "u 502"},
		{"GET", "/one/busy", a + " 502"}, // there is no other
	} {
		equal(t, step.method+" "+step.target, s.request(step.method, step.target).Header.Get("X-To"), step.want)
	}
	const line = `no live upstreams while connecting to upstream, client: 127.0.0.1, server: , request: "GET /busy HTTP/1.1", upstream: "http://u/busy"`
	if log := s.errors.String(); !strings.Contains(log, line) || !strings.Contains(log, strings.Replace(line, "GET", "POST", 1)) {
		t.Errorf("the log: %s", log)
	}
}
