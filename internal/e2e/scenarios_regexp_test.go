package e2e

// Regular expressions with what Go's library lacks, wherever nginx has them.
const regexpConf = `http { access_log off; default_type text/plain;
map $arg_m $mapped { default none; ~^(?<letter>[a-z])\k<letter>(?!x) "twice $letter"; ~*^(?=UP)(.) "up $1"; ~^a++b possessive; ~\bw\h\w+$ blank; }
server { listen {{LISTEN}}; server_name other; return 200 other; }
server { listen {{LISTEN}}; server_name ~^(?<sub>[a-z]+)(?<!www)\.re$; return 200 "sub $sub"; }
server { listen {{LISTEN}} default_server; root html;
  add_header X-Mapped $mapped;
  location ~ "^/(?<year>\d{4})-(?<month>\d\d)(?!\d)(.*)$" { return 200 "$year $month $3"; }
  location ~* ^/(?=CASE).*$ { return 200 "no case"; }
  location ~ ^/ends$ { return 200 ends; }
  location ~ ^/ends/(.*)\Z { return 200 "Z $1"; }
  location ~ ^/(?s:dot(.)all)$ { return 200 dots; }
  location ~ "^/(?x) ext ended $" { return 200 extended; }
  location ~ ^/class/[[:upper:]]+[^[:alpha:]\d]$ { return 200 class; }
  location ~ ^/quoted\Q.+\E\x2fhex\057$ { return 200 quoted; }
  location ~ ^/(?>a+)a { return 200 never; }
  location ~ ^/((?:(?!stop).)+)/stop { return 200 "before $1"; }
  location ~ "^/bytes/[\xc3][\x80-\xff]$" { return 200 bytes; }
  location /v2/ { if ($http_user_agent ~ "^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$" ) { return 404; } return 200 docker; }
  location /rewrite { rewrite ^/rewrite/(\w)\1(?=/)(.*)$ /rewritten/$1$2?; rewrite (?<=/)tail$ /rewritten/tail; return 200 "not $uri"; }
  location /rewritten { return 200 $uri; }
  location /referer { valid_referers none server_names ~good(?!bad); if ($invalid_referer) { return 403; } return 200 valid; }
  location /kept { if ($uri ~ ^/kept\Kx(.)) { return 200 "kept $1"; } return 200 none; }
  location /proxy { proxy_set_header X-Mapped $mapped; proxy_pass http://{{UP1}}; proxy_redirect ~^http://(?!b)[^/]*/(.)/ /new/$1/; }
  location / { return 200 "root $uri"; }
}
}
`

var regexpSteps = append(gets("/2026-11x", "/2026-112", "/case", "/CASE/x", "/ends", "/ends%0A", "/ends%0A%0A", "/ends/a%0A", "/dot%0Aall", "/dotxall", "/extended", "/ext%20ended", "/class/AB-", "/class/AB1", "/class/ab-",
	"/quoted.+/hex/", "/quotedd/hex/", "/aaa", "/a/b/stop/c", "/stop/stop", "/bytes/%C3%A9", "/bytes/%C3", "/rewrite/aa/x", "/rewrite/ab/x", "/rewrite/tail", "/keptxy", "/?m=aab", "/?m=aax", "/?m=upper", "/?m=UP", "/?m=aab%0A", "/?m=aaab", "/proxy?m=bb"),
	step{name: "docker 1.4", raw: get("/v2/", "User-Agent: docker/1.4.1")},
	step{name: "docker 1.5", raw: get("/v2/", "User-Agent: docker/1.5.0 go/x")},
	step{name: "docker 1.5 of developers", raw: get("/v2/", "User-Agent: docker/1.5.0-dev")},
	step{name: "docker 1.6", raw: get("/v2/", "User-Agent: docker/1.6.0")},
	step{name: "Go", raw: get("/v2/", "User-Agent: Go 1.1 package http")},
	step{name: "a good referer", raw: get("/referer", "Referer: http://a.good/x")},
	step{name: "a bad referer", raw: get("/referer", "Referer: http://a.goodbad/x")},
	step{name: "a name", raw: "GET / HTTP/1.1\r\nHost: abc.re\r\n\r\n"},
	step{name: "an excluded name", raw: "GET / HTTP/1.1\r\nHost: xwww.re\r\n\r\n"},
)
