package engine_test

import (
	"strings"
	"testing"
)

// The realip directives of a location apply to what runs after the location is chosen: allow,
// limit_req, what upstreams receive, and the log (ngx_http_realip_module's preaccess phase).
func TestRealIPOfALocation(t *testing.T) {
	up := echo(t)
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		log_format who "$uri $remote_addr $realip_remote_addr"; access_log who.log who;
		limit_req_zone $remote_addr zone=one:1m rate=1r/m;
		server { location / { return 200 "$remote_addr"; }
			location /allowed/ { set_real_ip_from 127.0.0.1; real_ip_header X-Client; allow 192.0.2.1; deny all; try_files /a =204; }
			location /denied/ { set_real_ip_from 127.0.0.1; deny 192.0.2.1; real_ip_header X-Client; try_files /a =204; }
			location /limited/ { access_log off; set_real_ip_from 127.0.0.1; limit_req zone=one; try_files /a =204; }
			location /deep/ { set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on; proxy_pass http://` + up + `; proxy_set_header X-At $proxy_add_x_forwarded_for; proxy_set_header X-Peer $realip_remote_addr; }
			location /from/ { set_real_ip_from 127.0.0.1; try_files /a @named; }
			location /other/ { set_real_ip_from 192.0.2.77; try_files /a =204; allow 127.0.0.1; deny all; }
			location @named { proxy_pass http://` + up + `; proxy_set_header X-At $remote_addr; }
			location /asks/ { auth_request /checks/; proxy_pass http://` + up + `; proxy_set_header X-At $remote_addr; }
			location /checks/ { set_real_ip_from 127.0.0.1; real_ip_header X-Client; try_files /a =204; }
		}
		server { server_name outer; access_log off; set_real_ip_from 127.0.0.1; location / { real_ip_header X-Client; allow 192.0.2.9; deny all; try_files /a =204; } } }`})
	for _, test := range []struct {
		target, field string
		status        int
		want          string // in the body
	}{
		{"/allowed/", "X-Client: 192.0.2.1", 204, ""},
		{"/allowed/", "X-Client: 192.0.2.2", 403, ""},
		{"/allowed/", "X-Real-IP: 192.0.2.1", 403, ""},
		{"/denied/", "X-Client: 192.0.2.1", 403, ""},
		{"/denied/", "X-Client: 192.0.2.2", 204, ""},
		{"/deep/", "X-Forwarded-For: 192.0.2.3, 10.0.0.1", 200, "X-At=192.0.2.3, 10.0.0.1, 192.0.2.3"},
		{"/deep/", "X-Forwarded-For: 192.0.2.3, 10.0.0.1", 200, "X-Peer=127.0.0.1"},
		{"/from/", "X-Real-IP: 192.0.2.4", 200, "X-At=192.0.2.4"},
		{"/other/", "X-Real-IP: 192.0.2.4", 204, ""},
		{"/limited/", "X-Real-IP: 192.0.2.1", 204, ""},
		{"/limited/", "X-Real-IP: 192.0.2.2", 204, ""},
		{"/limited/", "X-Real-IP: 192.0.2.1", 503, ""},
		{"/asks/", "X-Client: 192.0.2.5", 200, "X-At=192.0.2.5"},
		{"/", "X-Client: 192.0.2.1", 200, "127.0.0.1"},
	} {
		a := s.get(test.target, test.field)
		if a.StatusCode != test.status || !strings.Contains(a.body, test.want) {
			t.Errorf("%s with %s: %d %q, want %d with %q", test.target, test.field, a.StatusCode, a.body, test.status, test.want)
		}
	}
	// The server's own rule has run first, and the address is changed once.
	for field, want := range map[string]int{"X-Client: 192.0.2.9": 204, "X-Client: 192.0.2.9\r\nX-Real-IP: 192.0.2.8": 403} {
		equal(t, "outer, "+field, s.get("/", "Host: outer", field).StatusCode, want)
	}
	equal(t, "the log", s.file("who.log"), strings.Join([]string{
		"/allowed/ 192.0.2.1 127.0.0.1", "/allowed/ 192.0.2.2 127.0.0.1", "/allowed/ 127.0.0.1 127.0.0.1",
		"/denied/ 192.0.2.1 127.0.0.1", "/denied/ 192.0.2.2 127.0.0.1",
		"/deep/ 192.0.2.3 127.0.0.1", "/deep/ 192.0.2.3 127.0.0.1", "/from/ 192.0.2.4 127.0.0.1", "/other/ 127.0.0.1 127.0.0.1",
		"/asks/ 192.0.2.5 127.0.0.1", "/ 127.0.0.1 127.0.0.1", ""}, "\n"))
}
