package e2e

// What random configurations and requests have found to differ.

const foundConf = `http { default_type text/plain;
split_clients $arg_s $share { 0.01% some; }
log_format found '$http_x_id "$late" "$share" $upstream_status $upstream_addr'; access_log access.log found;
upstream group { server {{DEAD}} max_fails=0; server {{UP1}} backup; }
server { listen {{LISTEN}}; root html;
  location /late/ { set $late x; return 200 ok; }
  location /unset/ { return 200 ok; }
  location /status/ { return 418 "$status"; }
  location /page/ { root html/none; error_page 404 405 /$status.html; }
  location = /404.html { root html; }
  location /overwritten/ { error_page 404 =410 /told/$status; root html/none; }
  location /told/ { return 200 "$uri $status"; }
  location /moved/ { return 303 /p?x; }
  location /inside/ { internal; return 200 inside;
    location /inside/deep/ { return 200 deep; }
    location ~ \.php$ { return 200 script; } }
  location /except/ { internal; limit_except GET { allow all; } return 200 inside; }
  location /over/ { rewrite ^/over/(.*)$ /inside/deep/$1 last; }
  location /real/ { proxy_pass http://{{UP1}}; }
  location /twice/ { error_page 404 = @second; proxy_intercept_errors on; proxy_pass http://{{UP1}}/; }
  location /accel/ { proxy_pass http://group/; }
  location @named { proxy_pass http://group; }
  location @second { rewrite ^ /other break; proxy_pass http://group; }
  location /index/ { index none /page.html; }
  location /url/ { rewrite ^ https://$host$request_uri? permanent; }
  location /uri/ { rewrite ^ https://$host$uri permanent; }
  location /group/ { rewrite ^/group/(.*)$ http://other.example/$1 redirect; }
  location /query/ { rewrite ^/query/(.*)$ /q?of=$1 redirect; }
  location /within/ { rewrite ^/within/(.*)$ /q?of=$1 last; }
  location /arg/ { rewrite ^ /to/$arg_to? redirect; }
  location /q { return 200 "$args"; }
  location /charset/ { charset utf-8; types { } default_type text/html; location /charset/moved { return 302 /x; } location /charset/seen { return 303 /x; } return 200 x; }
  location /to-accel/ { proxy_pass http://{{UP1}}/; }
  location /internal/ { proxy_pass http://{{UP2}}; }
  location /trailer/ { add_trailer X-T t; alias html/; }
  location /empty { proxy_pass http://$arg_none; }
  location ~ ^/forgotten/(.*)$ { rewrite x /none last; return 200 "$1"; }
  location ~ ^/unmatched/(.*)$ { if ($arg_a ~ b) { set $late x; } return 200 "$1"; }
  location /injected/ { alias html/; sub_filter </h1> "!</h1>"; }
  location /file/ { if (-f html/page.html) { return 200 "below the prefix"; } if (-f server_test.go) { return 200 "below the working directory"; } }
}
server { listen {{LISTEN}}; server_name .dotted.example other.example; server_name_in_redirect on; location /name { return 200 "$server_name"; } location /to { return 301 /name; } }
}
`

var foundSteps = append(gets("/late/", "/unset/", "/status/", "/page/x", "/overwritten/x", "/inside/", "/inside/deep/", "/inside/x.php", "/except/", "/over/x", "/twice/x", "/twice/404", "/twice/accel-named", "/accel/accel-named",
	"/index/", "/index/none/", "/sub/index.html/", "/url/", "/url/a%20b%2Fc?d=e%20f", "/url/%C3%A9%3F", "/url/a+b", "/uri/a%2Fb?c", "/uri/%C3%A9", "/group/a%3Fb?c", "/group/a%26b%25", "/group/%C3%A9", "/group/\xc3\xa9", "/group/a+b", "/group/a%7Eb%41", "/query/a%26b%20c", "/query/a&b", "/query/a%3Db?c=d",
	"/within/a%26b%20c", "/within/a%2Bb;c", "/within/%22%3C%5C%5E%60%7B", "/arg/?to=a%2Fb%20c", "/file/", "/charset/", "/charset/moved", "/charset/seen", "/to-accel/accel", "/to-accel/accel-escaped", "/empty", "/forgotten/a", "/unmatched/a", "/injected/", "/injected/page.html"),
	step{name: "OPTIONS *", raw: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", methods: []string{"OPTIONS"}},
	step{name: "no Host and a redirect", raw: "GET /moved/ HTTP/1.0\r\n\r\n"},
	step{name: "a trailer in HTTP/1.0", raw: "GET /trailer/page.html HTTP/1.0\r\n\r\n"},
	step{name: "X-Real-IP", raw: get("/real/x", "X-Real-IP: 192.0.2.1")},
	step{name: "POST inside", raw: request("POST", "/except/", "", "Content-Length: 0"), methods: []string{"POST"}},
	step{name: "a name with a dot", raw: "GET /name HTTP/1.1\r\nHost: a.dotted.example\r\n\r\n"},
	step{name: "a redirect to it", raw: "GET /to HTTP/1.1\r\nHost: a.dotted.example\r\n\r\n"},
)
