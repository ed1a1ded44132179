package engine_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
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
