package e2e

const proxyConf = `http { access_log off;
upstream dead { server {{DEAD}}; server {{UP2}}; }
upstream statuses { server {{UP1}}; server {{UP2}}; }
upstream posted { server {{UP1}}; server {{UP2}}; }
upstream local { server unix:{{UNIX}}; }
server { listen {{LISTEN}}; root html; default_type text/plain; proxy_http_version 1.1;
  error_page 410 /404.html; error_page 403 =200 @named; error_page 401 /50x.html; error_page 503 https://elsewhere.example/;
  location @named { return 200 "named $upstream_status"; }
  location /method/ { proxy_method PUT; proxy_pass http://{{UP1}}; }
  location /variable-method/ { proxy_method $arg_m; proxy_pass http://{{UP1}}; }
  location /body/ { proxy_set_body "a=$arg_a&b"; proxy_pass http://{{UP1}}; }
  location /nobody/ { proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_pass http://{{UP1}}; }
  location /nofields/ { proxy_pass_request_headers off; proxy_set_header X-Own $http_x_client; proxy_pass http://{{UP1}}; }
  location /intercept/ { proxy_intercept_errors on; proxy_pass http://{{UP1}}/; }
  location /inside/ { proxy_pass http://{{UP1}}/; }
  location /accel/ { proxy_pass http://{{UP1}}/; proxy_hide_header Content-Disposition; }
  location /ignore/ { proxy_ignore_headers X-Accel-Redirect Set-Cookie; proxy_pass http://{{UP1}}/; }
  location /internal/ { internal; alias html/; }
  location = /returned { return 200 "returned"; }
  location /domain/ { proxy_cookie_domain app.internal $host; proxy_pass http://{{UP1}}/; }
  location /domains/ { proxy_cookie_domain ~\.?([a-z]+)\.internal$ $1.example; proxy_pass http://{{UP1}}/; }
  location /path/ { proxy_cookie_path /app/ /; proxy_cookie_path ~*^/OTH(.*)$ /new$1; proxy_pass http://{{UP1}}/; }
  location /flags/ { proxy_cookie_flags a nosecure samesite=lax; proxy_cookie_flags ~^[bc]$ secure httponly samesite=strict; proxy_cookie_flags c nohttponly; proxy_pass http://{{UP1}}/; }
  location /flagsoff/ { proxy_cookie_flags off; proxy_pass http://{{UP1}}/; }
  location /dead/ { proxy_pass http://dead/; }
  location /next/ { proxy_next_upstream error http_503 http_404; proxy_pass http://statuses/; }
  location /posted/ { proxy_next_upstream error http_503 http_404; proxy_pass http://posted/; }
  location /posted-twice/ { proxy_next_upstream error http_503 http_404 non_idempotent; proxy_pass http://posted/; }
  location /nonext/ { proxy_next_upstream off; proxy_pass http://dead/; }
  location /unix/ { proxy_pass http://unix:{{UNIX}}:/base/; proxy_set_header Host $proxy_host; }
  location /local/ { proxy_pass http://local; }
  location /bound/ { proxy_bind 127.0.0.9; proxy_pass http://{{UP1}}; }
  location /buffered/ { proxy_request_buffering on; proxy_buffering on; proxy_buffers 4 4k; proxy_busy_buffers_size 8k; client_body_buffer_size 1; proxy_pass http://{{UP1}}/; }
  location /streamed/ { proxy_request_buffering off; proxy_buffering off; proxy_pass http://{{UP1}}/; }
} }
`

var proxySteps = append(gets("/method/x", "/variable-method/x?m=DELETE", "/body/x?a=1", "/nobody/x", "/intercept/410", "/intercept/403", "/intercept/401", "/intercept/503", "/intercept/404", "/intercept/x",
	"/inside/410", "/inside/401", "/accel/accel", "/accel/accel-named", "/accel/accel-escaped", "/accel/accel-outside", "/accel/accel-return", "/ignore/accel", "/internal/page.html", "/domain/attributes", "/domains/attributes", "/path/attributes", "/flags/attributes", "/flagsoff/attributes",
	"/dead/x", "/dead/y", "/next/x", "/next/404", "/next/500", "/nonext/x", "/unix/x", "/unix/a%20b?c", "/local/x", "/bound/x", "/buffered/big", "/buffered/chunked", "/buffered/eof", "/streamed/big"),
	step{name: "body replaced", raw: request("POST", "/body/x?a=1", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "body not passed", raw: request("POST", "/nobody/x", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "fields not passed", raw: get("/nofields/x", "X-Client: 1", "Cookie: a=b", "X-Forwarded-For: 192.0.2.1")},
	step{name: "fields not passed, with a body", raw: request("POST", "/nofields/x", "hello", "Content-Length: 5", "Content-Type: text/x"), methods: []string{"POST"}},
	step{name: "HEAD of an accelerated one", raw: request("HEAD", "/accel/accel", ""), methods: []string{"HEAD"}},
	step{name: "POST of an accelerated one", raw: request("POST", "/accel/accel", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "POST to a dead one", raw: request("POST", "/dead/x", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "POST with another status", raw: request("POST", "/posted/404", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "POST to the next", raw: request("POST", "/posted-twice/404", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "buffered upload", raw: request("POST", "/buffered/x", "5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), methods: []string{"POST"}},
)

const upstreamTLSConf = `http { access_log off; proxy_ssl_session_reuse off; proxy_http_version 1.1;
upstream named { server {{TLSUP}}; }
server { listen {{LISTEN}};
  location /plain/ { proxy_pass https://{{TLSUP}}; proxy_set_header Host h; }
  location /name/ { proxy_pass https://{{TLSUP}}; proxy_ssl_server_name on; proxy_ssl_name upstream.example; proxy_set_header Host h; }
  location /group/ { proxy_pass https://named; proxy_ssl_server_name on; }
  location /variable/ { proxy_pass https://{{TLSUP}}; proxy_ssl_server_name on; proxy_ssl_name $arg_n.example; proxy_set_header Host h; }
  location /verified/ { proxy_pass https://{{TLSUP}}; proxy_ssl_verify on; proxy_ssl_name upstream.example; proxy_ssl_trusted_certificate ca.pem; proxy_set_header Host h; }
  location /othername/ { proxy_pass https://{{TLSUP}}; proxy_ssl_verify on; proxy_ssl_name other.example; proxy_ssl_trusted_certificate ca.pem; }
  location /otherca/ { proxy_pass https://{{TLSUP}}; proxy_ssl_verify on; proxy_ssl_name upstream.example; proxy_ssl_trusted_certificate stranger.pem; }
  location /client/ { proxy_pass https://{{TLSUP}}; proxy_ssl_certificate client.example.pem; proxy_ssl_certificate_key client.example.key; proxy_set_header Host h; }
  location /encrypted/ { proxy_pass https://{{TLSUP}}; proxy_ssl_certificate client.example.pem; proxy_ssl_certificate_key client.example.encrypted; proxy_ssl_password_file passwords; proxy_set_header Host h; }
  location /named/ { proxy_pass https://{{TLSUP}}; proxy_ssl_certificate $arg_c.example.pem; proxy_ssl_certificate_key $arg_c.example.encrypted; proxy_ssl_password_file passwords; proxy_set_header Host h; }
  location /without/ { proxy_pass https://{{TLSUP}}; proxy_ssl_certificate $arg_c; proxy_ssl_certificate_key $arg_c; proxy_set_header Host h; }
  location /protocols/ { proxy_pass https://{{TLSUP}}; proxy_ssl_protocols TLSv1.2; proxy_set_header Host h; }
} }
`

var upstreamTLSSteps = gets("/plain/x", "/name/x", "/group/x", "/variable/x?n=a", "/variable/x?n=b", "/verified/x", "/othername/x", "/otherca/x", "/client/x", "/encrypted/x", "/named/x?c=client", "/named/x?c=missing", "/without/x", "/protocols/x")

const resolverConf = `http { access_log off; default_type text/plain; resolver {{DNS}} ipv6=off valid=30s; proxy_http_version 1.1;
upstream group { server {{UP2}}; }
server { listen {{LISTEN}};
  set $app "app.test"; set $proto "http";
  location /whole/ { proxy_pass $proto://$app:{{PORT1}}; }
  location /uri/ { proxy_pass http://$app:{{PORT1}}/base$uri$is_args$args; }
  location /group/ { set $to group; proxy_pass http://$to; }
  location /address/ { set $to {{UP1}}; proxy_pass http://$to; }
  location /unknown/ { set $to nowhere.invalid; proxy_pass http://$to; }
  location /bad/ { set $to "ftp://x"; proxy_pass $to; }
  location /named/ { set $to $arg_name; proxy_pass http://$to:{{PORT1}}; }
  location /families/ { resolver {{DNS}}; set $to $arg_name; proxy_pass http://$to:{{PORT1}}; }
} }
`

var resolverSteps = append(gets("/whole/x%2Fy?z=1", "/uri/x?y=2", "/group/x", "/address/x", "/unknown/x", "/unknown/x", "/bad/x", "/whole/again",
	"/named/x?name=APP.Test", "/named/x?name=app.test.", "/named/x?name=alias.test", "/named/x?name=alias.test", "/named/x?name=ill.test", "/named/x?name=a..test",
	"/families/x?name=app.test", "/families/x?name=alias.test", "/families/x?name=ill.test"),
	step{name: "upgrade", raw: webSocketRequest("/whole/ws")})

// The variables of upstreams where the response is on its way, and in the log.
const upstreamVariablesConf = `http {
map $upstream_header_time $header_time { "" none; ~^[0-9.]+$ one; "~^[0-9.-]+ : [0-9.]+$" redirected; "~^-, [0-9.]+$" second; default $upstream_header_time; }
map $upstream_status $known { "" none; ~^2 good; default "other $upstream_status"; }
map $upstream_response_time $time { "" none; - running; ~^[0-9.]+$ one; "~^[0-9.]+ : -$" "one : running"; "~^- : -$" "- : -"; "~^[0-9.]+, -$" "one, running"; "~^[0-9.]+, [0-9.]+$" two; "~^[0-9.]+ : [0-9.]+$" redirected; default $upstream_response_time; }
log_format upstream '"$request" "$upstream_addr" "$upstream_status" "$upstream_connect_time" "$upstream_header_time" "$upstream_response_time" "$upstream_response_length" "$request_body" "$request_completion" "$upstream_cache_status"'; access_log access.log upstream;
upstream group { server {{DEAD}} max_fails=0; server {{UP1}} backup; }
proxy_intercept_errors on;
server { listen {{LISTEN}}; root html;
  add_header X-Addr "$upstream_addr" always; add_header X-Status "$upstream_status" always; add_header X-Known "$known" always;
  add_header X-Header-Time "$header_time" always; add_header X-Time "$time" always;
  location / { try_files /none =404; }
  location /one/ { proxy_pass http://{{UP1}}/; }
  location /two/ { proxy_pass http://group/; }
  location /page/ { proxy_pass http://{{UP1}}/; error_page 404 /none; error_page 403 = @second; error_page 410 /one/after; }
  location /dead/ { proxy_pass http://{{DEAD}}/; }
  location /dead-page/ { proxy_pass http://{{DEAD}}/; error_page 502 = @second; }
  location /ws/ { proxy_pass http://{{UP1}}; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
  location @second { proxy_pass http://{{UP2}}; }
} }
`

var upstreamVariablesSteps = append(gets("/", "/one/x", "/one/404", "/two/x", "/two/404", "/page/404", "/page/403", "/page/410", "/page/x", "/dead/", "/dead-page/"),
	step{name: "HEAD", raw: request("HEAD", "/one/x", ""), methods: []string{"HEAD"}},
	step{name: "POST", raw: request("POST", "/one/x", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "POST to the second", raw: request("POST", "/two/x", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "POST that nothing reads", raw: request("POST", "/", "hello", "Content-Length: 5"), methods: []string{"POST"}},
	step{name: "upgrade", raw: webSocketRequest("/ws/ws")}) // the last: its line is written when the tunnel has ended

// Variables that logs and headers seldom have.
const variablesConf = `http { default_type text/plain; gzip on; gzip_min_length 1; gzip_types *;
log_format all '"$request" "$request_completion" "$http2" "$ssl_protocol" "$ssl_cipher" "$ssl_curve" "$ssl_session_reused" "$ssl_early_data" "$ssl_alpn_protocol" "$limit_rate" "$connection_time" "$realpath_root" "$msie" "$slice_range" "$upstream_cache_status" "$upstream_cache_last_modified" "$upstream_connect_time" "$upstream_response_length" "$request_body" "$ratio" "$request_length" "$pipe"';
map $gzip_ratio $ratio { "" none; ~^[0-9]+[.][0-9][0-9]$ some; default $gzip_ratio; } map $date_gmt $gmt { "~^[A-Z][a-z]+day, [0-9][0-9]-[A-Z][a-z][a-z]-20[0-9][0-9] [0-9:]+ GMT$" date; default $date_gmt; } map $date_local $local { "~^[A-Z][a-z]+day, [0-9][0-9]-[A-Z][a-z][a-z]-20[0-9][0-9] [0-9:]+ [A-Z]+$" date; default $date_local; }
access_log access.log all;
server { listen {{LISTEN}}; root html;
  location / { return 200 "$http2 $ssl_early_data $limit_rate $msie $slice_range $gmt $local $realpath_root"; }
  location /rate/ { set $limit_rate 1m; return 200 "$limit_rate"; }
  location /bad-rate/ { set $limit_rate x; return 200 "$limit_rate"; }
  location /limited/ { limit_rate 64k; return 200 "$limit_rate"; }
  location /nowhere/ { root none; return 200 "$realpath_root"; }
  location /file/ { alias html/; }
} }
`

const tlsVariablesConf = `http { default_type text/plain;
log_format all '"$request" "$ssl_protocol" "$ssl_cipher" "$ssl_curve" "$ssl_session_reused" "$ssl_early_data" "$ssl_alpn_protocol" "$ssl_server_name"';
access_log access.log all; ssl_certificate first.pem; ssl_certificate_key first.key; ssl_protocols TLSv1.2;
server { listen {{LISTEN}} ssl; return 200 "$ssl_protocol $ssl_cipher $ssl_curve $ssl_session_reused $ssl_early_data $ssl_alpn_protocol $ssl_server_name"; } }
`

var tlsVariablesSteps = []step{{name: "TLS", sni: "first.example", raw: get("/")}}

var variablesSteps = append(gets("/", "/rate/", "/bad-rate/", "/limited/", "/nowhere/", "/file/style.css", "/file/none"),
	step{name: "compressed", raw: get("/file/style.css", "Accept-Encoding: gzip")},
	step{name: "MSIE", raw: get("/", "User-Agent: Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)")},
	step{name: "no MSIE", raw: get("/", "User-Agent: Opera (MSIE 6.0)")},
	step{name: "HEAD", raw: request("HEAD", "/file/style.css", ""), methods: []string{"HEAD"}},
)

// Upgrades to other protocols than WebSocket, as docker and kubectl request them.
const upgradesConf = `http { access_log off; map $http_upgrade $websocket { websocket websocket; default ""; }
server { listen {{LISTEN}}; proxy_http_version 1.1;
  location / { proxy_pass http://{{UP1}}; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
  location /only/ { proxy_pass http://{{UP1}}; proxy_set_header Upgrade $websocket; proxy_set_header Connection $http_connection; }
  location /none/ { proxy_pass http://{{UP1}}; }
} }
`

var upgradesSteps = []step{
	{name: "tcp", raw: get("/tcp", "Connection: Upgrade", "Upgrade: tcp") + string(webSocketFrame)},
	{name: "POST to tcp", raw: request("POST", "/tcp", "", "Connection: Upgrade", "Upgrade: tcp", "Content-Length: 0") + string(webSocketFrame), methods: []string{"POST"}},
	{name: "POST with a body to tcp", raw: request("POST", "/tcp", `{"Tty":false}`, "Connection: Upgrade", "Upgrade: tcp", "Content-Type: application/json", "Content-Length: 13") + string(webSocketFrame), methods: []string{"POST"}},
	{name: "POST with a body where it is not sent", raw: request("POST", "/none/tcp", `{"Tty":false}`, "Connection: Upgrade", "Upgrade: tcp", "Content-Length: 13"), methods: []string{"POST"}},
	{name: "tcp where it is not sent", raw: get("/none/tcp", "Connection: Upgrade", "Upgrade: tcp")},
	{name: "websocket", raw: webSocketRequest("/only/ws")},
}
