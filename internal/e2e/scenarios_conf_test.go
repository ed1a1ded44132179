package e2e

import "strings"

const staticConf = `http { access_log off;
types { text/html html; text/css css; }
default_type application/octet-stream;
server { listen {{LISTEN}}; root html; index index.html; } }
`

var staticSteps = append(gets("/", "/page.html", "/style.css", "/data.bin", "/noext", "/missing", "/sub", "/sub/", "/sub?x=1", "/empty/", "/../secret",
	"/%2e%2e/secret", "/page.html/", "/sub/../page.html", "//page.html", "/page%2Ehtml", "/page.html?x=1"),
	step{name: "HEAD", raw: request("HEAD", "/page.html", ""), methods: []string{"HEAD"}},
	step{name: "POST", raw: request("POST", "/page.html", "", "Content-Length: 0"), methods: []string{"POST"}},
	step{name: "range", raw: get("/data.bin", "Range: bytes=10-19")},
	step{name: "suffix range", raw: get("/data.bin", "Range: bytes=-5")},
	step{name: "open range", raw: get("/data.bin", "Range: bytes=990-")},
	step{name: "range beyond", raw: get("/data.bin", "Range: bytes=2000-")},
	step{name: "malformed range", raw: get("/data.bin", "Range: bytes=x-y")},
	step{name: "if-range", raw: get("/data.bin", "Range: bytes=0-3", "If-Range: \"no\"")},
	step{name: "modified since", raw: get("/page.html", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT")},
	step{name: "modified since before", raw: get("/page.html", "If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT")},
	step{name: "none match", raw: get("/page.html", `If-None-Match: "6553f100-d"`)},
	step{name: "none match other", raw: get("/page.html", `If-None-Match: "other"`)},
	step{name: "match other", raw: get("/page.html", `If-Match: "other"`)},
	step{name: "unmodified since", raw: get("/page.html", "If-Unmodified-Since: Tue, 14 Nov 2023 22:13:19 GMT")},
)

const locationConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}};
  location / { return 200 "root"; }
  location = /exact { return 200 "exact"; }
  location /pre { return 200 "prefix"; }
  location ^~ /stop { return 200 "stop"; }
  location ~ \.php$ { return 200 "php"; }
  location ~* \.PHP$ { return 200 "any php"; }
  location /case { location = /case { return 200 "nested exact"; } }
  location /nested/ {
    location /nested/b { return 200 "nested b"; }
    return 200 "nested";
  }
} }
`

const nameConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; server_name default.example; return 200 "default $server_name"; }
server { listen {{LISTEN}}; server_name exact.example; return 200 "exact $host"; }
server { listen {{LISTEN}}; server_name *.wild.example; return 200 "leading"; }
server { listen {{LISTEN}}; server_name mail.*; return 200 "trailing"; }
server { listen {{LISTEN}}; server_name .both.example; return 200 "both"; }
server { listen {{LISTEN}}; server_name ~^www(?<n>\d+)\.example$; return 200 "regex $n"; }
server { listen {{LISTEN}}; server_name ""; return 200 "empty"; }
}
`

var nameSteps = func() []step {
	var steps []step
	for _, host := range []string{"exact.example", "EXACT.example", "exact.example:99", "exact.example.", "a.wild.example", "a.b.wild.example", "wild.example", "mail.x", "mail.x.y",
		"both.example", "c.both.example", "www7.example", "www.example", "nobody.example", "[::1]", "bad_host", "a b"} {
		steps = append(steps, step{name: host, raw: "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"})
	}
	return append(steps, step{name: "none", raw: "GET / HTTP/1.0\r\n\r\n"})
}()

const mapConf = `http { access_log off; default_type text/plain;
map $http_upgrade $connection_upgrade { default upgrade; '' close; }
map $http_host $by_host { hostnames; default none; exact.example exact; *.wild.example wild; tail.* tail; .both.example both; }
map $arg_x $by_regex { default d; ~^a a; ~*^B "b $arg_y"; "~^(?<all>c.*)$" "c:$all"; "" nothing; }
map $arg_x:$arg_y $pair { a:b ab; default $arg_x; }
server { listen {{LISTEN}}; return 200 "$connection_upgrade $by_host $by_regex $pair"; } }
`

var mapSteps = []step{
	{name: "none", raw: get("/")},
	{name: "upgrade", raw: get("/", "Upgrade: anything")},
	{name: "a", raw: get("/?x=abc")},
	{name: "b", raw: get("/?x=bcd&y=7")},
	{name: "c", raw: get("/?x=cde")},
	{name: "pair", raw: get("/?x=a&y=b")},
	{name: "host", raw: "GET / HTTP/1.1\r\nHost: exact.example\r\n\r\n"},
	{name: "wild", raw: "GET / HTTP/1.1\r\nHost: a.wild.example\r\n\r\n"},
	{name: "tail", raw: "GET / HTTP/1.1\r\nHost: tail.x\r\n\r\n"},
	{name: "both", raw: "GET / HTTP/1.1\r\nHost: both.example\r\n\r\n"},
}

const passConf = `http { access_log off;
upstream group { server {{UP1}}; }
server { listen {{LISTEN}};
  location /a/ { proxy_pass http://group/base/; }
  location /b/ { proxy_pass http://group/base; }
  location /c { proxy_pass http://{{UP2}}/; }
  location /plain/ { proxy_pass http://group; }
} }
`

const setHeaderConf = `http { access_log off;
proxy_set_header X-Outer outer;
server { listen {{LISTEN}};
  location /outer/ { proxy_pass http://{{UP1}}; }
  location /inner/ { proxy_pass http://{{UP1}}; proxy_set_header X-Inner "in $remote_addr"; proxy_set_header Accept-Encoding ""; proxy_set_header Host $host; }
  location /usual/ { proxy_pass http://{{UP1}};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header Connection ""; }
} }
`

var setHeaderSteps = []step{
	{name: "outer", raw: get("/outer/x")},
	{name: "inner", raw: get("/inner/x", "Accept-Encoding: gzip", "X-Inner: client")},
	{name: "usual", raw: get("/usual/x", "X-Real-IP: 192.0.2.9")},
	{name: "usual chained", raw: get("/usual/x", "X-Forwarded-For: 192.0.2.1, 192.0.2.2")},
}

const addHeaderConf = `http { access_log off; add_header X-Http outer;
server { listen {{LISTEN}}; root html;
  location / { proxy_pass http://{{UP1}}; }
  location /always/ { proxy_pass http://{{UP1}}; add_header X-Always "yes $request_method" always; add_header X-Not no; }
  location /inner/ { proxy_pass http://{{UP1}}; add_header X-Inner 1; add_header X-Empty ""; }
  location ~ html$ { add_header X-Asset 1; }
  location = /return { return 410 "gone"; }
} }
`

const expiresConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; expires epoch;
  location = /epoch { return 200 "x"; }
  location = /max { expires max; return 200 "x"; }
  location = /off { expires off; return 200 "x"; }
  location = /negative { expires epoch; return 200 "x"; }
  location = /zero { expires max; return 404 "x"; }
  location = /410 { expires max; proxy_pass http://{{UP1}}; }
  location = /inherited { proxy_pass http://{{UP1}}; }
  location = /replaced { expires max; proxy_pass http://{{UP1}}/410-fresh; }
} }
`

const returnConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}};
  location = /204 { return 204; }
  location = /200 { return 200; }
  location = /302 { return 302 /there; }
  location = /301 { return 301 https://$host$request_uri; }
  location = /url { return http://elsewhere.example/x; }
  location = /444 { return 444; }
  location = /410 { return 410; }
  location = /503 { return 503; }
  location = /text { return 403 "no $arg_x"; }
  location = /var { return 200 "$uri $args $is_args$query_string $request_uri $request_method $scheme $server_protocol"; }
} }
`

const errorPageConf = `http { access_log off; types { text/html html; }
server { listen {{LISTEN}}; root html;
  error_page 404 /404.html;
  location = /404.html { internal; }
  location /other { error_page 404 =200 /page.html; }
  location /coded { error_page 404 = /page.html; }
  location /named { error_page 404 = @fallback; }
  location @fallback { return 200 "named $uri"; }
  location /external { error_page 404 https://elsewhere.example/; }
  location /keep { error_page 404 =410 /404.html; }
  location /dead { error_page 502 504 /50x.html; proxy_pass http://{{DEAD}}; }
  location /intercepted/ { proxy_pass http://{{UP1}}; }
} }
`

const logConf = `http { default_type text/plain;
log_format long '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" '
  '$host $http_host $request_method $uri $request_uri "$args" $server_name $server_protocol $scheme $upstream_addr $upstream_status '
  '"$sent_http_content_type" "$http_x_q" $request_length "$cookie_a" $arg_x $is_args $query_string $document_uri $content_length $bytes_sent_off';
map $uri $bytes_sent_off { default -; }
access_log access.log long;
server { listen {{LISTEN}}; server_name log.example; root html;
  error_page 404 502 /404.html;
  location /p/ { proxy_pass http://{{UP1}}; }
  location /dead/ { proxy_pass http://{{DEAD}}; }
  location /r { return 200 "text"; }
} }
`

var logSteps = []step{
	{name: "plain", raw: get("/p/x?x=1", "User-Agent: e2e", "Referer: http://x/", "Cookie: a=7")},
	{name: "quotes", raw: get("/p/x", `X-Q: say "hi" \ there`, "User-Agent: "+strings.Repeat("é", 2))},
	{name: "user", raw: get("/r", "Authorization: Basic bWU6c2VjcmV0")},
	{name: "missing", raw: get("/missing")},
	{name: "HEAD", raw: request("HEAD", "/p/x", ""), methods: []string{"HEAD"}},
	{name: "post", raw: request("POST", "/p/x", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	{name: "dead", raw: get("/dead/x")},
}
