package e2e

import "strings"

const limitConf = `http { access_log off; default_type text/plain;
limit_req_zone $arg_key zone=one:1m rate=1r/m; limit_req_zone $server_name zone=all:1m rate=10000r/s;
limit_conn_zone $binary_remote_addr zone=conns:1m;
server { listen {{LISTEN}}; root html; limit_conn conns 10;
  location /strict/ { limit_req zone=one; root html; try_files /page.html =404; }
  location /burst/ { limit_req zone=one burst=2 nodelay; limit_req_status 429; try_files /page.html =404; }
  location /two/ { limit_req zone=one burst=1 nodelay; limit_req zone=all burst=5; try_files /page.html =404; }
  location /dry/ { limit_req zone=one; limit_req_dry_run on; add_header X-Limit $limit_req_status; try_files /page.html =404; }
  location /page/ { error_page 503 =200 /page.html; limit_req zone=one; try_files /none /page/inner; }
  location /returned/ { limit_req zone=one; return 200 "not limited"; }
  location /rate/ { limit_rate 100k; limit_rate_after 10k; alias html/; }
  location /upstream-rate/ { proxy_pass http://{{UP1}}/; }
  location /except/ { limit_except GET POST { deny all; } proxy_pass http://{{UP1}}/; }
  location /except-pass/ { limit_except GET { proxy_pass http://{{UP2}}; } proxy_pass http://{{UP1}}; }
  location /except-auth/ { limit_except GET { auth_basic "write"; auth_basic_user_file {{DIR}}/users; } proxy_pass http://{{UP1}}/; }
} }
`

var limitSteps = func() []step {
	five := func(target string) step {
		return step{name: "five of " + target, raw: strings.Repeat(get(target), 5), methods: []string{"GET", "GET", "GET", "GET", "GET"}}
	}
	methods := func(target string) (steps []step) {
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"} {
			steps = append(steps, step{name: m + " " + target, raw: request(m, target, "", "Content-Length: 0"), methods: []string{m}})
		}
		return steps
	}
	steps := []step{five("/strict/?key=a"), five("/strict/?key=b"), five("/strict/"), five("/burst/?key=c"), five("/two/?key=d"), five("/dry/?key=e"), five("/page/?key=f"), five("/returned/?key=g")}
	steps = append(steps, gets("/rate/data.bin", "/upstream-rate/limited")...)
	for _, target := range []string{"/except/x", "/except-pass/x", "/except-auth/x"} {
		steps = append(steps, methods(target)...)
	}
	return steps
}()

const authRequestConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; root html;
  auth_request /auth; auth_request_set $who $upstream_http_x_a;
  location / { add_header X-Who $who; root html; }
  location = /auth { internal; proxy_pass http://{{UP2}}/$arg_say; proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_set_header X-Original-URI $request_uri; }
  location /open/ { auth_request off; alias html/; }
  location /local/ { auth_request /deny; alias html/; }
  location = /deny { return 403; }
  location /none/ { auth_request /nowhere; alias html/; }
  location /any/ { satisfy any; allow 127.0.0.2; deny all; alias html/; }
  location /page/ { error_page 401 = @login; alias html/; }
  location @login { auth_request off; return 302 /login?to=$request_uri; }
  location /up/ { auth_request_set $status_of_auth $upstream_status; proxy_set_header X-Auth $status_of_auth; proxy_pass http://{{UP1}}; }
} }
`

var authRequestSteps = func() []step {
	var steps []step
	for _, target := range []string{"/page.html", "/open/page.html", "/local/page.html", "/none/page.html", "/any/page.html", "/page/page.html", "/up/x"} {
		for _, say := range []string{"204", "401", "403", "404", "500", "x"} {
			steps = append(steps, step{name: target + " " + say, raw: get(target+"?say="+say, "Cookie: a=b"), local: "127.0.0.1"})
		}
	}
	return append(steps,
		step{name: "with a body", raw: request("POST", "/up/x?say=204", "hello", "Content-Length: 5"), methods: []string{"POST"}},
		step{name: "by address", raw: get("/any/page.html?say=401"), local: "127.0.0.2"},
	)
}()

const mirrorConf = `http { access_log off; default_type text/plain; proxy_http_version 1.1;
server { listen {{LISTEN}};
  location / { mirror /copy; proxy_pass http://{{UP1}}; }
  location = /copy { internal; proxy_pass http://{{UP2}}$request_uri; proxy_set_header X-Original $request_uri; }
  location /empty/ { mirror /copy; mirror_request_body off; proxy_pass http://{{UP1}}; }
  location /off/ { mirror off; proxy_pass http://{{UP1}}; }
} }
`

var mirrorSteps = []step{
	{name: "GET", raw: get("/x?y"), copies: 2},
	{name: "POST", raw: request("POST", "/x", "hello", "Content-Length: 5"), methods: []string{"POST"}, copies: 2},
	{name: "off", raw: get("/off/x")},
}
