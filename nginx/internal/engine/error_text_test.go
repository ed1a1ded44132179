package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// Errors of a configuration beyond its syntax. Lines count from "events {}"; the texts are
// nginx's except for what only culvert refuses.
func TestConfigurationErrors(t *testing.T) {
	http := func(s string) string { return "events {}\nhttp {\n" + s + "\n}" }
	srv := func(s string) string { return http("server {\n" + s + "\n}") }
	tests := []struct{ about, conf, want string }{
		{"no events", "http {}", `no "events" section in configuration`},
		{"unknown variable", srv("return 200 $nosuch;"), `unknown "nosuch" variable in DIR/nginx.conf:4`},
		{"unknown variable in a map", http("map $nosuch $a { x y; }"), `unknown "nosuch" variable in DIR/nginx.conf:3`},
		{"unknown variable in a log format", http("log_format a $nosuch;"), `unknown "nosuch" variable in DIR/nginx.conf:3`},
		{"duplicate upstream", http("upstream a { server 127.0.0.1; }\nupstream a { server 127.0.0.1; }"), `duplicate upstream "a" in DIR/nginx.conf:4`},
		{"empty upstream", http("upstream a { }"), `no servers are inside upstream in DIR/nginx.conf:3`},
		{"nothing but backups", http("upstream a { server 127.0.0.1 backup; }"), `no servers in upstream "a" in DIR/nginx.conf:3`},
		{"unknown host in an upstream", http("upstream a { server nosuch.invalid; }"), `host not found in upstream "nosuch.invalid" in DIR/nginx.conf:3`},
		{"unknown host in proxy_pass", srv("location / { proxy_pass http://nosuch.invalid:80; }"), `host not found in upstream "nosuch.invalid" in DIR/nginx.conf:4`},
		{"bad port in an upstream", http("upstream a { server 127.0.0.1:0; }"), `invalid port in upstream "127.0.0.1:0" in DIR/nginx.conf:3`},
		{"bad parameter of a target", http("upstream a { server 127.0.0.1 weight=0; }"), `invalid parameter "weight=0" in DIR/nginx.conf:3`},
		{"unsupported parameter of a target", http("upstream a { server 127.0.0.1 slow_start=3s; }"), `parameter "slow_start=3s" of "server" is not supported by culvert yet in DIR/nginx.conf:3`},
		{"backup with ip_hash", http("upstream a { ip_hash; server 127.0.0.1; server 127.0.0.2 backup; }"), `balancing method does not support parameter "backup" in DIR/nginx.conf:3`},
		{"open parenthesis", srv("location ~ \"(\" { }"), `pcre2_compile() failed: missing closing parenthesis in "(" in DIR/nginx.conf:4`},
		{"open bracket", srv("server_name ~[a;"), `pcre2_compile() failed: missing terminating ] for character class in "[a" in DIR/nginx.conf:4`},
		{"recursion", srv("location ~ ^/(a)(?1) { }"), `regular expression "^/(a)(?1)" is not supported by culvert yet (recursion) in DIR/nginx.conf:4`},
		{"bad expression in a map", http("map $uri $a { ~+ x; }"), `pcre2_compile() failed: quantifier does not follow a repeatable item in "+" in DIR/nginx.conf:3`},
		{"duplicate location", srv("location /a {}\nlocation ^~ /a {}"), `duplicate location "/a" in DIR/nginx.conf:5`},
		{"duplicate exact location", srv("location = /a {}\nlocation = /a {}"), `duplicate location "/a" in DIR/nginx.conf:5`},
		{"location modifier", srv("location % /a {}"), `invalid location modifier "%" in DIR/nginx.conf:4`},
		{"location outside", srv("location /a { location /b {} }"), `location "/b" is outside location "/a" in DIR/nginx.conf:4`},
		{"named location inside", srv("location /a { location @b {} }"), `named location "@b" can be on the server level only in DIR/nginx.conf:4`},
		{"two default servers", http("server { listen 81 default_server; }\nserver { listen 81 default_server; }"), `a duplicate default server for 0.0.0.0:81 in DIR/nginx.conf:4`},
		{"two listens", srv("listen 81; listen *:81;"), `a duplicate listen *:81 in DIR/nginx.conf:4`},
		{"bad port", srv("listen 127.0.0.1:99999;"), `invalid port in "127.0.0.1:99999" of the "listen" directive in DIR/nginx.conf:4`},
		{"bad listen host", srv("listen nosuch.invalid:80;"), `host not found in "nosuch.invalid:80" of the "listen" directive in DIR/nginx.conf:4`},
		{"bad listen parameter", srv("listen 80 foo;"), `invalid parameter "foo" in DIR/nginx.conf:4`},
		{"no path of a unix socket", srv("listen unix:;"), `no path in the unix domain socket in "unix:" of the "listen" directive in DIR/nginx.conf:4`},
		{"long path of a unix socket", srv("listen unix:/" + strings.Repeat("x", 107) + ";"), `too long path in the unix domain socket in "unix:/` + strings.Repeat("x", 107) + `" of the "listen" directive in DIR/nginx.conf:4`},
		{"two default servers of a unix socket", http("server { listen unix:/a default_server; }\nserver { listen unix:/a default_server; }"), `a duplicate default server for unix:/a in DIR/nginx.conf:4`},
		{"two listens on a unix socket", srv("listen unix:/a; listen unix:/a;"), `a duplicate listen unix:/a in DIR/nginx.conf:4`},
		{"options of a socket twice", http("server { listen 81 backlog=1; }\nserver { listen 81 bind; }"), `duplicate listen options for 0.0.0.0:81 in DIR/nginx.conf:4`},
		{"backlog", srv("listen 80 backlog=0;"), `invalid backlog "backlog=0" in DIR/nginx.conf:4`},
		{"backlog without a value", srv("listen 80 backlog;"), `invalid parameter "backlog" in DIR/nginx.conf:4`},
		{"fastopen", srv("listen 80 fastopen=x;"), `invalid fastopen "fastopen=x" in DIR/nginx.conf:4`},
		{"rcvbuf", srv("listen 80 rcvbuf=x;"), `invalid rcvbuf "rcvbuf=x" in DIR/nginx.conf:4`},
		{"ipv6only", srv("listen 80 ipv6only=x;"), `invalid parameter "ipv6only=x" in DIR/nginx.conf:4`},
		{"unsupported listen parameter", srv("listen 80 multipath;"), `parameter "multipath" of "listen" is not supported by culvert yet in DIR/nginx.conf:4`},
		{"TLS without a certificate", srv("listen 443 ssl;"), `no "ssl_certificate" is defined for the "listen ... ssl" directive in DIR/nginx.conf:3`},
		{"missing certificate", srv("listen 443 ssl; ssl_certificate c; ssl_certificate_key k;"), `cannot load certificate "DIR/c": 2: No such file or directory in DIR/nginx.conf:4`},
		{"URL of proxy_pass", srv("location / { proxy_pass ftp://a; }"), `invalid URL prefix in DIR/nginx.conf:4`},
		{"URI in a regular expression", srv("location ~ a { proxy_pass http://127.0.0.1/x; }"), `"proxy_pass" cannot have URI part in location given by regular expression, or inside named location, or inside "if" statement, or inside "limit_except" block in DIR/nginx.conf:4`},
		{"default redirect with variables", srv("location / { proxy_pass http://$host; proxy_redirect default; }"), `"proxy_redirect default" cannot be used with "proxy_pass" directive with variables in DIR/nginx.conf:4`},
		{"allow", srv("allow foo;"), `invalid parameter "foo" in DIR/nginx.conf:4`},
		{"allow a network", srv("deny 10.0.0.0/40;"), `invalid parameter "10.0.0.0/40" in DIR/nginx.conf:4`},
		{"satisfy", srv("satisfy foo;"), `invalid value "foo" in DIR/nginx.conf:4`},
		{"compression level", srv("gzip_comp_level 0;"), `value must be between 1 and 9 in DIR/nginx.conf:4`},
		{"compression level no number", srv("gzip_comp_level x;"), `"gzip_comp_level" directive invalid number in DIR/nginx.conf:4`},
		{"length to compress", srv("gzip_min_length x;"), `"gzip_min_length" directive invalid value in DIR/nginx.conf:4`},
		{"compression for proxies", srv("gzip_proxied x;"), `invalid value "x" in DIR/nginx.conf:4`},
		{"compression by version", srv("gzip_http_version 2.0;"), `invalid value "2.0" in DIR/nginx.conf:4`},
		{"realm", srv("auth_basic $nosuch;"), `unknown "nosuch" variable in DIR/nginx.conf:4`},
		{"hash", http("upstream a { hash $uri b; server 127.0.0.1; }"), `invalid parameter "b" in DIR/nginx.conf:3`},
		{"random", http("upstream a { random two x; server 127.0.0.1; }"), `invalid parameter "x" in DIR/nginx.conf:3`},
		{"backup with hash", http("upstream a { hash $uri; server 127.0.0.1; server 127.0.0.2 backup; }"), `balancing method does not support parameter "backup" in DIR/nginx.conf:3`},
		{"set no variable", srv("set foo bar;"), `invalid variable name "foo" in DIR/nginx.conf:4`},
		{"set nginx's own variable", srv("set $host x;"), `the duplicate "host" variable in DIR/nginx.conf:4`},
		{"rewrite flag", srv("rewrite a b foo;"), `invalid parameter "foo" in DIR/nginx.conf:4`},
		{"rewrite expression", srv("rewrite ( x;"), `pcre2_compile() failed: missing closing parenthesis in "(" in DIR/nginx.conf:4`},
		{"condition", srv("if (foo) { }"), `invalid condition "foo" in DIR/nginx.conf:4`},
		{"condition too short", srv("if ($a = ) { }"), `invalid condition "$a" in DIR/nginx.conf:4`},
		{"condition's operator", srv("if ($host < x) { }"), `unexpected "<" in condition in DIR/nginx.conf:4`},
		{"condition of a file", srv("if (-q x) { }"), `invalid condition "-q" in DIR/nginx.conf:4`},
		{"URI in an if", srv("location / { if ($host) { proxy_pass http://127.0.0.1/x; } }"), `"proxy_pass" cannot have URI part in location given by regular expression, or inside named location, or inside "if" statement, or inside "limit_except" block in DIR/nginx.conf:4`},
		{"return code", srv("return foo;"), `invalid return code "foo" in DIR/nginx.conf:4`},
		{"error_page code", srv("error_page 600 /x;"), `value "600" must be between 300 and 599 in DIR/nginx.conf:4`},
		{"error_page response", srv("error_page 404 =x /x;"), `invalid value "=x" in DIR/nginx.conf:4`},
		{"expires", srv("expires soon;"), `"expires" directive invalid value in DIR/nginx.conf:4`},
		{"expires time of day", srv("expires @25h;"), `"expires" directive daily time value must be less than 24 hours in DIR/nginx.conf:4`},
		{"size", srv("client_max_body_size 1x;"), `"client_max_body_size" directive invalid value in DIR/nginx.conf:4`},
		{"time", srv("proxy_read_timeout 1q;"), `"proxy_read_timeout" directive invalid value in DIR/nginx.conf:4`},
		{"add_header", srv("add_header A b c;"), `invalid parameter "c" in DIR/nginx.conf:4`},
		{"log format", http("access_log a nosuch;"), `unknown log format "nosuch" in DIR/nginx.conf:3`},
		{"duplicate log format", http("log_format a x;\nlog_format a y;"), `duplicate "log_format" name "a" in DIR/nginx.conf:4`},
		{"log escape", http("log_format a escape=x y;"), `unknown log format escaping "x" in DIR/nginx.conf:3`},
		{"log directory", http("access_log none/a;"), `open() "DIR/none/a" failed (2: No such file or directory)`},
		{"log level", "error_log e foo;\nevents {}", `invalid log level "foo" in DIR/nginx.conf:1`},
		{"root and alias", srv("location / { root a; alias b; }"), `"alias" directive is duplicate, "root" directive was specified earlier in DIR/nginx.conf:4`},
		{"duplicate map key", http("map $uri $a { x 1;\nX 2; }"), `conflicting parameter "x" in DIR/nginx.conf:4`},
		{"duplicate map default", http("map $uri $a { default 1;\ndefault 2; }"), `duplicate default map parameter in DIR/nginx.conf:4`},
		{"map without a variable", http("map $uri a { }"), `invalid variable name "a" in DIR/nginx.conf:3`},
		{"try_files code", srv("try_files a =x;"), `invalid code "=x" in DIR/nginx.conf:4`},
		{"proxy_http_version", srv("proxy_http_version 3;"), `invalid value "3" in DIR/nginx.conf:4`},
		{"ssl_protocols", srv("ssl_protocols TLSv9;"), `invalid value "TLSv9" in DIR/nginx.conf:4`},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			dir := write(t, map[string]string{"nginx.conf": tt.conf})
			_, err := engine.Load(engine.LoadOptions{Prefix: dir, File: "nginx.conf"})
			if err == nil {
				t.Fatal("it loaded")
			}
			if e := (*engine.Error)(nil); !errors.As(err, &e) {
				t.Errorf("%T is no *engine.Error", err)
			}
			equal(t, "error", strings.ReplaceAll(err.Error(), dir, "DIR"), tt.want)
		})
	}
}
