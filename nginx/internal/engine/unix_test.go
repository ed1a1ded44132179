package engine_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// The address of a client over a unix socket is "unix:", and it has no port.
func TestUnixClients(t *testing.T) {
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http {
		log_format short "$remote_addr $realip_remote_addr [$remote_port]"; access_log a.log short;
		set_real_ip_from unix:;
		map $binary_remote_addr $binary { "unix:" text; default bytes; }
		server { listen unix:front; server_name plain;
			location / { return 200 "$remote_addr [$remote_port] [$server_port] $realip_remote_addr $binary $proxy_add_x_forwarded_for"; }
			location /where { return 200 $server_addr; }
			location /moved { return 301 /there; }
			location /allowed/ { allow unix:; deny all; alias ./; }
			location /denied/ { deny unix:; allow all; alias ./; }
			location /net/ { allow 0.0.0.0/0; allow ::/0; deny all; alias ./; }
		}
		server { listen unix:front; server_name trusting; real_ip_header X-Forwarded-For; real_ip_recursive on;
			location / { return 200 "$remote_addr $realip_remote_addr"; }
			location /allowed/ { allow unix:; deny all; alias ./; }
		}
		server { listen unix:front; server_name distrustful; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; return 200 $remote_addr; }
	}`}, "page", "page"))
	for _, test := range []struct{ host, target, forwarded, want string }{
		{"plain", "/", "", "unix: [] [] unix: text unix:"},
		{"plain", "/", "192.0.2.1", "unix: [] [] unix: text 192.0.2.1, unix:"},
		{"plain", "/allowed/page", "", "page"},
		{"plain", "/denied/page", "", "403"},
		{"plain", "/net/page", "", "403"},
		{"trusting", "/", "", "unix: unix:"},
		{"trusting", "/", "192.0.2.1", "192.0.2.1 unix:"},
		{"trusting", "/", "192.0.2.1, 192.0.2.2", "192.0.2.2 unix:"},
		{"trusting", "/", "nonsense", "unix: unix:"},
		{"trusting", "/allowed/page", "", "page"},
		{"trusting", "/allowed/page", "192.0.2.1", "403"},
		{"distrustful", "/", "192.0.2.1", "unix:"},
	} {
		fields := []string{"Host: " + test.host}
		if test.forwarded != "" {
			fields = append(fields, "X-Forwarded-For: "+test.forwarded)
		}
		a := s.get(test.target, fields...)
		got := a.body
		if a.StatusCode != 200 {
			got = a.Status[:3]
		}
		equal(t, test.host+test.target+" "+test.forwarded, got, test.want)
	}
	equal(t, "Location", s.get("/moved", "Host: plain:81").Header.Get("Location"), "http://plain/there")
	equal(t, "server address", s.get("/where", "Host: plain").body, "unix:"+filepath.Join(s.dir, "front"))
	equal(t, "log line", strings.HasSuffix(strings.SplitN(s.file("a.log"), "\n", 2)[0], "unix: unix: []"), true)
}
