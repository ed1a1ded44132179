package e2e

const rewriteConf = `http { access_log off; default_type text/plain;
map $arg_m $mapped { default none; a "mapped a"; }
server { listen {{LISTEN}}; root html;
  set $who world;
  rewrite ^/server/(.*)$ /there/$1;
  if ($arg_stop) { return 418; }
  if ($http_x_who ~* ^(?<name>\w+)@(\w+)$) { set $who "$name at $2"; }
  location / { return 200 "$uri ? $args | $who | $request_uri"; }
  location /there/ { return 200 "there $uri ? $args"; }
  location /last/ { rewrite ^/last/(\w+)/(.*)$ /there/$2?first=$1 last; return 200 "not rewritten"; }
  location /drop/ { rewrite ^/drop/(.*)$ /there/$1?only=this? last; }
  location /dropall/ { rewrite ^/dropall/(.*)$ /there/$1? last; }
  location /break/ { rewrite ^/break/(.*)$ /page.html break; root html; }
  location /on/ { rewrite ^/on/(.*)$ /off/$1; rewrite ^/off/(.*)$ /there/two/$1; }
  location /redirect/ { rewrite ^/redirect/(.*)$ /to/$1 redirect; }
  location /permanent/ { rewrite ^/permanent/(.*)$ http://other.example/$1?a=b permanent; }
  location /url/ { rewrite ^ https://$host$uri; }
  location /loop/ { rewrite ^/loop/(.*)$ /loop/x$1 last; }
  location /case { rewrite (?i)^/CASE$ /there/case last; return 200 "no case"; }
  location /if/ {
    set $result plain;
    if ($request_method = HEAD) { set $result head; }
    if ($arg_a = "1") { set $result one; add_header X-If one; }
    if ($arg_a != "1") { set $result "$result not one"; }
    if ($arg_b ~ ^x(.)) { set $result "$result $1"; }
    if ($arg_b !~* ^X) { set $result "$result no x"; }
    if ($arg_c) { set $result "$result c"; break; set $result never; }
    if (-f {{DIR}}/html/page.html) { set $result "$result file"; }
    if (!-d {{DIR}}/html/page.html) { set $result "$result no dir"; }
    if (-e {{DIR}}/none) { return 500; }
    return 200 "$result | $mapped";
  }
  location /order/ { return 200 first; return 200 second; }
  location /conditional/ { if ($arg_old) { return 301 /new; } proxy_pass http://{{UP1}}; }
  location /inif/ { if ($arg_two) { proxy_pass http://{{UP2}}; } proxy_pass http://{{UP1}}; }
  location /headerif/ { add_header X-A a; if ($arg_b) { add_header X-B b; } proxy_pass http://{{UP1}}; }
  location /prefix/ { rewrite ^/prefix/one(.*)$ /prefix/two$1 break; proxy_pass http://{{UP1}}/base/; }
  location /proxied/ { rewrite ^/proxied/(.*)$ /inside/$1 break; proxy_pass http://{{UP1}}; }
  location /args/ { set $args "x=y&$args"; proxy_pass http://{{UP1}}; }
  location /internal/ { internal; return 200 "internal $uri"; }
  location /tointernal/ { rewrite ^/to(.*)$ /$1 last; }
  location /tointernal2/ { rewrite ^/tointernal2(.*)$ /internal$1 last; }
  location @named { rewrite ^ /there/named last; }
  location /try/ { try_files /none @named; }
  location /static/ { rewrite ^/static/(.*)$ /$1 break; }
}
server { listen {{LISTEN}}; server_name bare; root html; set $n "1$n"; rewrite ^/(.*)$ /sub/$1; add_header X-N $n; }
}
`

var rewriteSteps = append(gets("/", "/server/a?b=c", "/there/x", "/last/one/two", "/last/one/two?q=1", "/last/none", "/drop/x?q=1", "/dropall/x?q=1", "/break/x", "/break/", "/on/x?y", "/redirect/x?y=z", "/permanent/x", "/permanent/x?y=z",
	"/permanent/a%20b", "/url/a?b", "/loop/", "/CASE", "/case", "/?stop=1", "/?stop=0", "/if/", "/if/?a=1", "/if/?a=2&b=xy", "/if/?b=X", "/if/?c=1&m=a", "/order/", "/conditional/?old=1", "/conditional/x%2Fy", "/inif/", "/inif/?two=1",
	"/headerif/", "/headerif/?b=1", "/prefix/one/a", "/prefix/other/a", "/proxied/a%20b/c?d=e", "/proxied/%D1%8F", "/args/?z", "/args/", "/internal/x", "/tointernal/x", "/tointernal2/x", "/try/x", "/static/page.html", "/static/none", "/last/a/b%20c%3Fd"),
	step{name: "a server without locations", raw: "GET /index.html HTTP/1.1\r\nHost: bare\r\n\r\n"},
	step{name: "captures of an if", raw: get("/", "X-Who: Ann@work")},
	step{name: "HEAD", raw: request("HEAD", "/if/", ""), methods: []string{"HEAD"}},
)

// What of a path reaches the upstream as the client has sent it.
const rawPathConf = `http { access_log off;
server { listen {{LISTEN}}; root html; proxy_bind $arg_from; set $up {{UP2}};
  rewrite ^/served/(.*)$ /base/$1 break;
  location / { try_files $uri @app; }
  location /missing/ { error_page 404 = @app; }
  location /coded/ { error_page 418 = @app; return 418; }
  location /dead/ { error_page 502 = @app; proxy_pass http://{{DEAD}}/base/; }
  location /passed/ { error_page 502 = @app; proxy_pass http://{{DEAD}}; }
  location /own/ { try_files $uri @own; }
  location /own-uri/ { try_files $uri @uri; }
  location /own-break/ { try_files $uri @break; }
  location /own-last/ { try_files $uri @last; }
  location /accel/ { proxy_pass http://{{UP1}}/; }
  location /moved/ { rewrite ^/moved/(.*)$ /other/$1 last; }
  location /moved-named/ { rewrite ^/moved-named/(.*)$ /none/$1 last; }
  location /here/ { rewrite ^/here/(.*)$ /there/$1 break; try_files $uri @app; }
  location /inside/ { try_files $uri /other$uri; }
  location /inside-named/ { try_files $uri /none$uri; }
  location /page/ { error_page 404 /other/page; }
  location /other/ { proxy_pass http://{{UP1}}; }
  location /args/ { set $args a=b; try_files $uri @app; }
  location /args-here/ { set $args a=b; proxy_pass http://{{UP1}}; }
  location /base/ { proxy_pass http://{{UP1}}/b/; }
  location @app { proxy_pass http://{{UP1}}; }
  location @own { proxy_pass http://$up; }
  location @uri { proxy_pass http://$up/base$uri; }
  location @break { rewrite ^/(.*)$ /x/$1 break; proxy_pass http://{{UP1}}; }
  location @named { proxy_pass http://{{UP2}}; }
  location @last { rewrite ^/(.*)$ /other/$1 last; }
} }
`

var rawPathSteps = func() []step {
	var steps []step
	for _, dir := range []string{"", "missing/", "coded/", "dead/", "passed/", "own/", "own-uri/", "own-break/", "own-last/", "moved/", "moved-named/", "here/", "inside/", "inside-named/", "page/", "other/", "args/", "args-here/", "base/", "served/"} {
		for _, rest := range []string{"plain?q=%20", "group%2Fproject", "a//b/./c/../d", "%41<>%C3%A9?x=1&y"} {
			steps = append(steps, step{name: dir + rest, raw: get("/" + dir + rest)})
		}
	}
	return append(steps, gets("//two", "/accel/accel-named")...)
}()

// Files that are included inside the blocks of a location.
const includeConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; root html;
  if ($arg_gone) { include {{DIR}}/gone.conf; }
  location / { if ($request_method = OPTIONS) { include cors.conf; } return 200 ok; }
  location /some/ { if ($arg_a) { include {{DIR}}/*rs.conf; } proxy_pass http://{{UP1}}; }
  location /limited/ { limit_except GET { include deny.conf; } alias html/; }
} }
`

var includeFiles = map[string]string{"gone.conf": "return 410;", "cors.conf": "add_header Access-Control-Max-Age 86400;\nreturn 204;", "deny.conf": "deny all;", "html/page.html": "page"}

var includeSteps = append(gets("/", "/?gone=1", "/some/x", "/some/x?a=1", "/limited/page.html"),
	step{name: "OPTIONS", raw: request("OPTIONS", "/", ""), methods: []string{"OPTIONS"}},
	step{name: "not allowed", raw: request("DELETE", "/limited/page.html", ""), methods: []string{"DELETE"}},
)
