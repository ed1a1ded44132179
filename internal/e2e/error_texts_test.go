package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wrong are lines of a server block, or of http or an upstream where they begin so, that
// nginx refuses.
var wrong = []string{
	"nosuch x;", "listen;", "listen 80 80;", "listen 127.0.0.1:99999;", "listen 80 foo;", "server_name;", "server_name ~;",
	"root;", "root a b;", "root a; root b;", "root a; alias b;", "index;", "try_files a;", "try_files a =x;", "location { }", "location ~ ( { }", "location % /a { }", "location /a { } location /a { }", "location = /a { } location = /a { }",
	"location /a { location /b { } }", "location /a { location @b { } }", "location = /a { location /b { } }", "location @a { location /b { } }",
	"return;", "return foo;", "return 1000;", "return 200 a b;", "rewrite a;", "rewrite a b c;", "rewrite ( b;", "rewrite a b last break;", "set $a;", "set a b;", "set $host x;", "if { }", "if ($host) ;", "if (foo) { }", "if ($host < x) { }", "if ($host = ) { }", "if (-q x) { }", "break x;",
	"error_page;", "error_page 404;", "error_page 600 /x;", "error_page 299 /x;", "error_page 404 =x /x;", "error_page x /x;", "error_page 499 /x;",
	"expires;", "expires soon;", "expires @25h;", "expires a b c;", "add_header a;", "add_header a b c;", "add_trailer a b c;", "add_header a b c d;",
	"client_max_body_size 1x;", "client_max_body_size;", "client_body_buffer_size x;", "client_body_timeout 1q;", "client_header_timeout x;", "send_timeout -1;", "large_client_header_buffers 4;", "large_client_header_buffers x 1k;",
	"keepalive_timeout x;", "keepalive_timeout 1 x;", "keepalive_requests x;", "keepalive_time x;", "merge_slashes maybe;", "absolute_redirect 1;", "etag maybe;", "if_modified_since never;", "satisfy some;", "allow foo;", "deny 10.0.0.0/40;", "allow;",
	"autoindex maybe;", "autoindex;", "autoindex on off;", "autoindex on; autoindex on;", "autoindex_exact_size maybe;", "autoindex_exact_size;", "autoindex_localtime 1;", "autoindex_localtime on; autoindex_localtime off;",
	"autoindex_format yaml;", "autoindex_format;", "autoindex_format html xml;", "autoindex_format json; autoindex_format json;", "if ($host) { autoindex on; }", "upstream: autoindex on;", "main: autoindex on;",
	"auth_basic;", "auth_basic $nosuch;", "auth_request;", "auth_request_set $a;", "auth_request_set a b;", "limit_rate x;", "limit_rate_after x;",
	"limit_req;", "limit_req burst=1;", "limit_req zone=none;", "limit_req zone=a burst=x;", "limit_req zone=a delay=0;", "limit_req zone=a foo;", "limit_req_status 200;", "limit_req_status x;", "limit_req_log_level loud;", "limit_req_dry_run maybe;",
	"limit_conn a;", "limit_conn none 1;", "limit_conn c 0;", "limit_conn c x;", "limit_conn c 65536;", "limit_conn c 1; limit_conn c 2;", "limit_req zone=a; limit_req zone=a;", "limit_conn_status 600;",
	"http: limit_req_zone $arg_x zone=b:1m;\nlimit_req_zone $arg_x rate=1r/s;", "http: limit_req_zone $arg_x zone=b:1m rate=x;", "http: limit_req_zone $arg_x zone=b:1k rate=1r/s;", "http: limit_req_zone $arg_x zone=b:x rate=1r/s;", "http: limit_req_zone $nosuch zone=b:1m rate=1r/s;", "http: limit_req_zone $arg_x foo zone=b:1m;",
	"http: limit_conn_zone $arg_x zone=b:1k;", "http: limit_conn_zone $arg_x foo;", "http: limit_conn_zone $arg_x zone=b:x;",
	"http: limit_req_zone $arg_x zone=b:1m rate=1r/s;\nlimit_conn_zone $arg_x zone=b:2m;", "http: limit_conn_zone $arg_x zone=b:1m;\nlimit_req_zone $arg_x zone=b:1m rate=1r/s;", "http: limit_req_zone $arg_x zone=b:1m rate=1r/s;\nlimit_req_zone $arg_y zone=b:1m rate=2r/s;",
	"http: limit_conn_zone $arg_x zone=b:1m;\nlimit_conn_zone $arg_y zone=b:2m;", "http: limit_conn_zone $arg_x zone=b:1m;\nlimit_conn_zone $arg_y zone=b:1m;", "limit_conn a 1;", "limit_req zone=c;",
	"gzip maybe;", "gzip_comp_level 0;", "gzip_comp_level x;", "gzip_min_length x;", "gzip_proxied x;", "gzip_http_version 2.0;", "gzip_static maybe;", "gunzip maybe;", "gzip_types;",
	"real_ip_header;", "set_real_ip_from;", "set_real_ip_from x/y;", "resolver;", "resolver 127.0.0.1 valid=x;", "resolver 127.0.0.1 ipv6=maybe;", "resolver 127.0.0.1 foo=1;", "resolver_timeout x;",
	"charset;", "charset_types;", "sub_filter a;", "sub_filter '' b;", "sub_filter_once maybe;", "valid_referers;", "userid maybe;", "userid_expires x;", "userid_flags x;", "userid_flags secure x;", "mirror;", "mirror_request_body maybe;",
	"ssl_protocols TLSv9;", "ssl_verify_client maybe;", "ssl_verify_depth x;", "listen 443 ssl;", "listen 443 ssl; ssl_certificate none.pem; ssl_certificate_key none.key;", "listen 443 ssl; ssl_certificate first.example.pem;",
	"listen 443 ssl; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_verify_client on;",
	"listen 127.0.0.1:8001-8000;", "listen 127.0.0.1:0-1;", "listen unix:;", "listen unix:/" + strings.Repeat("x", 107) + ";", "listen unix:/a foo;", "listen unix:/a; listen unix:/a;", "listen unix:/a default_server; } server { listen unix:/a default_server;", "listen unix:/a backlog=1; } server { listen unix:/a bind;", "listen unix:/a ssl;",
	"listen unix:/a backlog=x;", "listen unix:/a backlog=0;", "listen unix:/a backlog;", "listen unix:/a rcvbuf=x;", "listen unix:/a sndbuf=x;", "listen unix:/a fastopen=x;", "listen unix:/a ipv6only=x;", "listen 81 backlog=1; } server { listen 81 backlog=1;", "allow unix:/a;", "set_real_ip_from unix:/a;",
	"secure_link;", "secure_link a b;", "secure_link_md5;", "secure_link_secret;", "secure_link $nosuch;", "secure_link_md5 $nosuch;", "secure_link a; secure_link b;", "secure_link_md5 a; secure_link_md5 b;", "secure_link_secret a; secure_link_secret b;",
	"secure_link a; secure_link_secret b;", "secure_link_secret a; secure_link_md5 b;", "location / { secure_link_md5 a; secure_link_secret ''; }", "http: server { secure_link x; location / { secure_link_secret a; secure_link b; } }", "if ($host) { secure_link a; }", "set $secure_link x;", "set $secure_link_expires x;",
	"access_log;", "access_log a.log nosuch;", "access_log none/a.log;", "access_log off x;", "access_log a.log combined foo=1;", "error_log e.log foo;", "error_log;", "ssl_crl;", "ssl_crl a b;", "ssl_crl a; ssl_crl b;", "proxy_ssl_crl;", "proxy_ssl_crl a; proxy_ssl_crl b;", "location / { ssl_crl a; }", "listen 443 ssl; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_crl none.pem;", "listen 443 ssl; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_crl first.example.key;", "location / { proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_crl none.pem; proxy_pass https://127.0.0.1; }",
	"access_log logs/$nosuch.log;", "access_log $.log;", "access_log logs/$host.log nosuch;", "access_log logs/$host.log combined buffer=1k;", "access_log logs/$host.log combined gzip;", "access_log logs/$host.log combined foo;", "access_log a.log buffer=32k;", "access_log a.log combined buffer=x;", "access_log a.log combined buffer=0;", "access_log a.log combined buffer=1k flush=x;", "access_log a.log combined gzip=10;", "access_log a.log combined flush=1s;", "access_log a.log combined if=$nosuch;",
	"access_log syslog:;", "access_log syslog:server;", "access_log syslog:server=;", "access_log syslog:tag=a;", "access_log syslog:server=127.0.0.1:0;", "access_log syslog:server=127.0.0.1:x;", "access_log syslog:server=127.0.0.1:;", "access_log syslog:server=127.0.0.1:99999;", "access_log syslog:server=::1;", "access_log syslog:server=[::1;", "access_log syslog:server=[::1]x;", "access_log syslog:server=[::1]:0;", "access_log syslog:server=[];", "access_log syslog:server=[127.0.0.1];", "access_log syslog:server=[x];", "access_log syslog:server=:514;", "access_log syslog:server=127.0.0.1/x;", "access_log syslog:server=[::1]/x;", "access_log syslog:server=nosuch.invalid;", "access_log syslog:server=unix:;", "access_log syslog:server=127.0.0.1,facility=nosuch;", "access_log syslog:server=127.0.0.1,facility=;", "access_log syslog:server=127.0.0.1,severity=warning;", "access_log syslog:server=127.0.0.1,tag=a-b;", "access_log syslog:server=127.0.0.1,tag=é;", "access_log syslog:server=127.0.0.1,foo=1;", "access_log syslog:server=127.0.0.1,;", "access_log syslog:server=127.0.0.1,nohostname=1;", "access_log syslog:server=127.0.0.1,Facility=cron;", "access_log syslog:server=127.0.0.1,server=127.0.0.2;", "access_log syslog:server=127.0.0.1,tag=a,tag=b;", "access_log syslog:server=127.0.0.1,facility=cron,facility=cron;", "access_log syslog:server=127.0.0.1,severity=info,severity=info;", "access_log syslog:server=127.0.0.1 nosuch;", "access_log syslog:server=127.0.0.1 combined buffer=32k;", "access_log syslog:server=127.0.0.1 combined gzip flush=1s;", "access_log syslog:server=127.0.0.1 combined foo;", "access_log syslog:foo nosuch;", "access_log syslog:server=$host;", "error_log syslog:;", "error_log syslog:tag=a;", "error_log syslog:server=127.0.0.1 foo;", "error_log syslog:server=127.0.0.1,facility=x foo;", "error_log syslog:foo=1;", "main: error_log syslog:server=127.0.0.1,severity=x;", "access_log syslog:server=127.0.0.1,tag=" + strings.Repeat("x", 33) + ";", "access_log syslog:server=unix:/" + strings.Repeat("x", 107) + ";",
	"http: log_format a;", "http: log_format a $nosuch;", "http: log_format a x; log_format a y;", "http: log_format a escape=x y;",
	"location / { proxy_pass; }", "location / { proxy_pass ftp://a; }", "location / { proxy_pass http://; }", "location / { proxy_pass http://127.0.0.1:0; }", "location / { proxy_pass http://nosuch.invalid:80; }", "location ~ a { proxy_pass http://127.0.0.1/x; }", "location @a { proxy_pass http://127.0.0.1/x; }",
	"location / { if ($host) { proxy_pass http://127.0.0.1/x; } }", "location / { limit_except GET { proxy_pass http://127.0.0.1/x; } }", "location / { limit_except FOO { deny all; } }", "location / { limit_except { deny all; } }", "location / { proxy_pass http://$nosuch; }",
	"location / { proxy_pass http://$host; proxy_redirect default; }", "proxy_redirect x;", "proxy_redirect ~( x;", "proxy_set_header a;", "proxy_set_header a $nosuch;", "proxy_hide_header;", "proxy_http_version 3;", "proxy_read_timeout 1q;", "proxy_connect_timeout;", "proxy_send_timeout x;",
	"proxy_next_upstream foo;", "proxy_next_upstream;", "proxy_next_upstream_tries x;", "proxy_next_upstream_timeout x;", "proxy_cookie_domain x;", "proxy_cookie_path x;", "proxy_cookie_flags a foo;", "proxy_cookie_domain ~( x;", "proxy_ignore_headers foo;", "proxy_intercept_errors maybe;", "proxy_buffering maybe;", "proxy_request_buffering x;",
	"proxy_buffers 4;", "proxy_buffers x 4k;", "proxy_buffers 1 4k;", "proxy_max_temp_file_size x;", "proxy_method;", "proxy_set_body;", "proxy_pass_request_body x;", "proxy_bind nonsense;", "proxy_bind 127.0.0.1 foo;",
	"proxy_ssl_verify maybe;", "proxy_ssl_verify_depth x;", "proxy_ssl_protocols TLSv9;", "location / { proxy_ssl_verify on; proxy_pass https://127.0.0.1; }", "location / { proxy_ssl_certificate first.example.pem; proxy_pass https://127.0.0.1; }",
	"upstream: ", "upstream: server;", "upstream: server 127.0.0.1:0;", "upstream: server nosuch.invalid;", "upstream: server 127.0.0.1 weight=0;", "upstream: server 127.0.0.1 max_fails=x;", "upstream: server 127.0.0.1 fail_timeout=x;", "upstream: server 127.0.0.1 max_conns=x;", "upstream: server 127.0.0.1 foo;",
	"upstream: server 127.0.0.1 backup;", "upstream: ip_hash; server 127.0.0.1; server 127.0.0.2 backup;", "upstream: hash; server 127.0.0.1;", "upstream: hash $uri foo; server 127.0.0.1;", "upstream: random two foo; server 127.0.0.1;", "upstream: random three; server 127.0.0.1;", "upstream: keepalive 0; server 127.0.0.1;", "upstream: keepalive x; server 127.0.0.1;", "upstream: keepalive_requests x; server 127.0.0.1;", "upstream: keepalive_timeout x; server 127.0.0.1;",
	"http: upstream u { server 127.0.0.1; }\nupstream u { server 127.0.0.1; }",
	"http: map $uri $m { a; }", "http: map $uri m { }", "http: map $uri $connection { }", "http: geo $host { }", "set $uri x;", "http: map $nosuch $m { a b; }", "http: map $uri $m { a 1; A 2; }", "http: map $uri $m { default 1; default 2; }", "http: map $uri $m { ~( x; }", "http: map $uri { }", "http: map $uri $m { a b c; }",
	"http: geo $g { a b; }", "http: geo g { }", "http: geo $g { 10.0.0.0/8; }", "http: geo $g { ranges; 10.0.0.1 x; }", "http: geo $g { ranges; 10.0.0.2-10.0.0.1 x; }", "http: geo $nosuch $g { }", "http: geo $g { 10.0.0.0/8 a b; }",
	"http: split_clients $uri $s { 60% a; 50% b; }", "http: split_clients $uri $s { x a; }", "http: split_clients $uri s { }", "http: split_clients $nosuch $s { }", "http: split_clients $uri $s { 0% a; }", "http: split_clients $uri $s { 10%; }",
	"http: server { server { } }", "http: types { a; b c }", "http: include none.conf;", "http: include loop.conf;", "http: }", "http: server {",
	"if ($1) { }", "if ($2 = x) { }", "if ($host$uri = x) { }", "http: log_format a $1;", "http: geo $1 $g { }",
	"valid_referers none;", "valid_referers none blocked ~a;", "location / { valid_referers blocked; }",
	"proxy_redirect off; proxy_redirect / /a;", "proxy_redirect / /a; proxy_redirect off;", "proxy_redirect off; proxy_redirect off;", "proxy_cookie_path off; proxy_cookie_path / /a;", "proxy_cookie_domain a b; proxy_cookie_domain off;", "proxy_cookie_flags off; proxy_cookie_flags a secure;", "proxy_cookie_flags a;",
	"location ~ a { location /a { } }", "location ~ ^/a { location = /a { } }",
	"main: events {}", "main: worker_processes x;", "main: pid;", "main: http {}\nhttp {}", "main: foo", "main: user;",
}

// TestErrorTextsAsNginx: what is wrong with a configuration is said in nginx's words, with its
// file and line. What differs is said in otherTexts.
func TestErrorTextsAsNginx(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, authority.files)
	writeFiles(t, dir, map[string]string{"loop.conf": "include loop.conf;\n"})
	met := map[string]bool{}
	for _, text := range wrong {
		writeFiles(t, dir, map[string]string{"nginx.conf": configurationOf(text)})
		theirs, ours := verdictOf(t, "/usr/sbin/nginx", dir), verdictOf(t, culvertNginx, dir)
		if want, ok := otherTexts[text]; ok {
			met[text] = true
			if ours != want {
				t.Errorf("%s\nculvert: %s\nwanted:  %s\nnginx:   %s", text, ours, want, theirs)
			}
			fact(t, "nginx's text for "+text+" differs from culvert's", ours != theirs, true)
			continue
		}
		if theirs == "" {
			t.Errorf("%s: nginx takes it", text)
		}
		if !place.MatchString(theirs) {
			ours = place.ReplaceAllString(ours, "")
		}
		if theirs != ours {
			t.Errorf("%s\nnginx:   %s\nculvert: %s", text, theirs, ours)
		}
	}
	for text := range otherTexts {
		if !met[text] {
			t.Errorf("%q is not tried any more", text)
		}
	}
}

// configurationOf puts the lines where they belong.
func configurationOf(text string) string {
	const zones = "limit_req_zone $arg_a zone=a:1m rate=1r/s; limit_conn_zone $arg_c zone=c:1m;\n"
	where, lines, found := strings.Cut(text, ": ")
	switch {
	case found && where == "main":
		return "events {}\n" + lines + "\n"
	case found && where == "http":
		return "events {}\nhttp {\n" + lines + "\n}\n"
	case found && where == "upstream":
		return "events {}\nhttp {\nupstream u {\n" + lines + "\n}\n}\n"
	}
	return "events {}\nhttp { " + zones + "server {\n" + text + "\n}\n}\n"
}

var emergency = regexp.MustCompile(`(?m)\[emerg\] (?:\d+#\d+: )?(.*)$`)

// verdictOf is the first error of -t, "" for none.
func verdictOf(t *testing.T, program, dir string) string {
	t.Helper()
	cmd := exec.Command(program, "-t", "-p", dir+"/", "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr", "-g", "pid nginx.pid;")
	out, _ := cmd.CombinedOutput()
	found := emergency.FindSubmatch(out)
	if found == nil {
		return ""
	}
	return strings.ReplaceAll(string(found[1]), dir+"/", "DIR/")
}

// place is where a fault is, which nginx does not say of each.
var place = regexp.MustCompile(` in DIR/nginx\.conf:\d+$`)

// otherTexts are those that are wanted to differ.
var otherTexts = map[string]string{
	// The parser's own word for it.
	"if { }": `directive "if"'s is not enclosed in parentheses in DIR/nginx.conf:4`,
	// Go's words for what a library says.
	"listen 443 ssl; ssl_certificate none.pem; ssl_certificate_key none.key;":                                                         `cannot load certificate "DIR/none.pem": 2: No such file or directory in DIR/nginx.conf:4`,
	"listen 443 ssl; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_crl none.pem;":                     `X509_LOOKUP_load_file("DIR/none.pem") failed (2: No such file or directory) in DIR/nginx.conf:4`,
	"listen 443 ssl; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_crl first.example.key;":            `X509_LOOKUP_load_file("DIR/first.example.key") failed (no certificate or crl found) in DIR/nginx.conf:4`,
	"location / { proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_crl none.pem; proxy_pass https://127.0.0.1; }": `X509_LOOKUP_load_file("DIR/none.pem") failed (2: No such file or directory) in DIR/nginx.conf:4`,
	// Since 1.29.7 it turns kept connections off.
	"upstream: keepalive 0; server 127.0.0.1;": "",
	// Since 1.27.4 trusted certificates alone suffice.
	"listen 443 ssl; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_verify_client on;": `no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client`,
	// The line of the directive, and not that of the block around it, or its end.
	"secure_link a; secure_link_secret b;":                                                `"secure_link_secret" cannot be mixed with "secure_link" and "secure_link_md5" in DIR/nginx.conf:4`,
	"secure_link_secret a; secure_link_md5 b;":                                            `"secure_link_secret" cannot be mixed with "secure_link" and "secure_link_md5" in DIR/nginx.conf:4`,
	"location / { secure_link_md5 a; secure_link_secret ''; }":                            `"secure_link_secret" cannot be mixed with "secure_link" and "secure_link_md5" in DIR/nginx.conf:4`,
	"http: server { secure_link x; location / { secure_link_secret a; secure_link b; } }": `"secure_link_secret" cannot be mixed with "secure_link" and "secure_link_md5" in DIR/nginx.conf:3`,
	"proxy_buffers 1 4k;": `there must be at least 2 "proxy_buffers" in DIR/nginx.conf:4`,
	"upstream: ":          `no servers are inside upstream in DIR/nginx.conf:3`,
	"main: foo":           `unexpected end of file, expecting ";" or "}" in DIR/nginx.conf:2`,
	// nginx takes what it then takes for something else, or falls over.
	"proxy_cookie_flags a foo;":            `invalid parameter "foo" in DIR/nginx.conf:4`,
	"http: split_clients $uri $s { 10%; }": `invalid number of parameters in DIR/nginx.conf:3`,
	"http: include loop.conf;":             `cycle of includes: "DIR/loop.conf" includes itself in DIR/loop.conf:1`,
	// A no-op's value is not looked at.
	"main: worker_processes x;": "",
}
