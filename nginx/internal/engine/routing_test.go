package engine_test

import (
	"net/http"
	"testing"
)

func TestLocations(t *testing.T) {
	s := serve(t, server(`
		location / { return 200 "root"; }
		location = /exact { return 200 "exact"; }
		location /pre { return 200 "pre"; location ~ \.x$ { return 200 "nested"; } }
		location ^~ /final/ { return 200 "final"; }
		location ~ ^/u/(\d+)/(?<name>\w+)$ { return 200 "$1 $name"; }
		location ~* \.JPG$ { return 200 "picture"; }
		location /p/ { proxy_pass http://127.0.0.1:1; }
		location /in { internal; return 200 "internal"; }`))
	for path, want := range map[string]string{
		"/":               "root",
		"/exact":          "exact",
		"/exact/":         "root",
		"/pre/a.x":        "nested",
		"/prefix":         "pre",
		"/final/a.jpg":    "final",
		"/u/7/bob":        "7 bob",
		"/a.jpg":          "picture",
		"/a%2Ejpg":        "picture", // the decoded path decides
		"//exact":         "exact",
		"/x/../exact":     "exact",
		"/%65xact?a.jpg":  "exact",
		"/pre/../final/a": "final",
	} {
		equal(t, path, s.get(path).body, want)
	}
	equal(t, "internal", s.get("/in").StatusCode, http.StatusNotFound)
	moved := s.get("/p?a=b")
	equal(t, "bare name", moved.StatusCode, http.StatusMovedPermanently)
	equal(t, "Location", moved.Header.Get("Location"), "http://localhost:"+port(s.first)+"/p/?a=b")
	for _, bad := range []string{"/..", "/a/../../b", "/%00"} {
		equal(t, bad, s.get(bad).StatusCode, http.StatusBadRequest)
	}
}

func port(addr string) string {
	for i := len(addr) - 1; ; i-- {
		if addr[i] == ':' {
			return addr[i+1:]
		}
	}
}

func TestServerChoice(t *testing.T) {
	one := func(name string) string {
		return "server { listen 80; server_name " + name + "; return 200 \"$server_name|$sub\"; }\n"
	}
	s := serve(t, map[string]string{"nginx.conf": "events {}\nhttp {\n" +
		"server { listen 80; server_name first; return 200 first; }\n" +
		one("exact.test") + one("*.wild.test") + one("tail.*") + one(`~^(?<sub>\w+)\.re\.test$`) +
		"server { listen 80 default_server; server_name _; return 200 default; }\n" +
		"server { listen 80; server_name \"\"; return 200 nameless; }\n}"})
	for host, want := range map[string]string{
		"exact.test": "exact.test|", "EXACT.test.:81": "exact.test|", "a.wild.test": "*.wild.test|", "a.b.wild.test": "*.wild.test|",
		"tail.org": "tail.*|", "bob.re.test": `~^(?<sub>\w+)\.re\.test$|bob`, "first": "first", "other": "default",
	} {
		equal(t, host, s.get("/", "Host: "+host).body, want)
	}
	equal(t, "no Host", s.send("GET / HTTP/1.0\r\n\r\n").body, "nameless")
	equal(t, "empty Host", s.get("/", "Host: ").StatusCode, http.StatusBadRequest)
}

func TestListeners(t *testing.T) {
	s, err := load(t, map[string]string{"nginx.conf": `events {} http {
		server { listen 81; listen [::]:81; keepalive_timeout 5s; client_header_timeout 7s; }
		server { listen 127.0.0.1:81; }
		server { listen 127.0.0.1:82; http2 on; http2_max_concurrent_streams 7; }
		server { listen unix:/run/s; listen UNIX:@s; }
		server { listen unix:/run/s http2; }
		server { }
	}`})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, l := range s.engine.Listeners() {
		got += l.Network + " " + l.Address + "; "
	}
	equal(t, "listeners", got, "tcp4 0.0.0.0:81; tcp6 [::]:81; tcp4 127.0.0.1:82; unix /run/s; unix ./@s; tcp4 0.0.0.0:80; ")
	first := s.engine.Listeners()[0]
	equal(t, "keepalive_timeout", first.IdleTimeout.String(), "5s")
	equal(t, "client_header_timeout", first.ReadHeaderTimeout.String(), "7s")
	equal(t, "http2", s.engine.Listeners()[2].HTTP2, true)
	equal(t, "streams", s.engine.Listeners()[2].MaxStreams, 7)
	equal(t, "streams by default", first.MaxStreams, 128)
	equal(t, "no http2", first.HTTP2, false)
	equal(t, "http2 over a unix socket", s.engine.Listeners()[3].HTTP2, true)
}

// A wildcard socket includes the other addresses of its port; the address that the client
// connected to selects the server.
func TestServersBehindAWildcard(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		server { listen 81; return 200 any; }
		server { listen 127.0.0.1:81; return 200 loopback; }
	}`})
	equal(t, "listeners", len(s.addrs), 1)
	equal(t, "server", s.get("/").body, "loopback")
}

func TestHeaderInheritance(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		add_header A http;
		server {
			location / { return 200 ok; location /deep { return 200 ok; } }
			location /own { return 200 ok; add_header C location; }
			location /always { add_header D "$uri" always; add_header E ""; return 404; }
			location /error { return 404; }
			add_header B server;
		}
	}`})
	fields := func(a response) string {
		got := ""
		for _, name := range []string{"A", "B", "C", "D", "E"} {
			if lines, ok := a.Header[name]; ok {
				got += name + "=" + lines[0] + " "
			}
		}
		return got
	}
	for path, want := range map[string]string{
		"/": "B=server ", "/deep": "B=server ", "/own": "C=location ", "/always": "D=/always ", "/error": "",
	} {
		equal(t, path, fields(s.get(path)), want)
	}
}
