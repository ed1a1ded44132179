package e2e

import "strings"

// Requests that no location sees, since they are malformed or too large, or not received as a whole.
const refusedConf = `http { default_type text/plain; client_header_timeout 1s; large_client_header_buffers 2 1k;
map $status $whole { 414 0; default 1; }
map $status $cut { 414 1; default 0; }
map $body_bytes_sent $content { 0 none; default some; }
log_format whole '$host $server_name "$request" $status $content "$http_referer" $request_method $uri $request_uri $args $connection_requests';
log_format cut '$status $content';
access_log access.log whole if=$whole; access_log access.log cut if=$cut;
server { listen {{LISTEN}}; server_name first.example; add_header X-Always $status always;
  error_page 505 @upstream; error_page 494 /upstream;
  location /upstream { return 200 "page $request_method $status"; }
  location @upstream { proxy_pass http://{{UP1}}; } }
server { listen {{LISTEN}}; server_name third.example; error_page 400 501 @upstream; error_page 408 /upstream;
  location /upstream { proxy_pass http://{{UP1}}; }
  location @upstream { proxy_pass http://{{UP1}}; } }
server { listen {{LISTEN}}; server_name second.example; error_page 400 /bad; error_page 501 @named;
  location = /bad { return 200 "bad $request_method $request_uri $uri"; }
  location @named { return 200 "named $request_method $request_uri $uri"; } } }
`

var refusedSteps = []step{
	{name: "served", raw: get("/x")},
	{name: "nonsense", raw: "nonsense\r\n\r\n"},
	{name: "TLS to a plain port", raw: "\x16\x03\x01\x02\x00\x01\x00\r\n"},
	{name: "quotes", raw: "GET /\"\\ HTTP/1.1\r\n\r\n"},
	{name: "no Host", raw: "GET /x?y HTTP/1.1\r\nReferer: r\r\n\r\n"},
	{name: "behind the Host", raw: "GET /a/../x%41?y=1 HTTP/1.1\r\nReferer: r\r\nHost: second.example\r\nno colon\r\n\r\n"},
	{name: "in front of the Host", raw: "GET /x HTTP/1.1\r\nno colon\r\nHost: second.example\r\n\r\n"},
	{name: "HEAD", raw: "HEAD /x HTTP/1.1\r\nHost: second.example\r\nno colon\r\n\r\n", methods: []string{"HEAD"}},
	{name: "two lengths", raw: request("POST", "/x", "hello", "Content-Length: 5", "Content-Length: 6"), methods: []string{"POST"}},
	{name: "length and chunked", raw: "POST /x HTTP/1.1\r\nHost: second.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", methods: []string{"POST"}},
	{name: "unknown coding", raw: "POST /x HTTP/1.1\r\nHost: second.example\r\nTransfer-Encoding: gzip\r\n\r\n", methods: []string{"POST"}},
	{name: "proxied page", raw: "POST /a/%2Fx?y HTTP/1.1\r\nHost: third.example\r\nX-A: 1\r\nConnection: close\r\nContent-Length: 3\r\nno colon\r\n\r\nabc", methods: []string{"POST"}},
	{name: "proxied page for a coding", raw: "POST /x HTTP/1.1\r\nHost: third.example\r\nTransfer-Encoding: gzip\r\n\r\n", methods: []string{"POST"}},
	{name: "late, with a page", raw: "GET /x HTTP/1.1\r\nHost: third.example\r\n"},
	{name: "second of a connection", raw: get("/x") + "GET /y HTTP/1.1\r\nno colon\r\n\r\n", methods: []string{"GET", "GET"}},
	{name: "one of three", raw: get("/x") + "GET /y HTTP/1.1\r\nno colon\r\n\r\n" + get("/z"), methods: []string{"GET", "GET", "GET"}},
	{name: "version", raw: "GET /x HTTP/3.0\r\nHost: second.example\r\n\r\n"},
	{name: "long line", raw: get("/" + strings.Repeat("x", 3000))},
	{name: "longer than a buffer", raw: get("/" + strings.Repeat("x", 1500))},
	{name: "a buffer's length", raw: get("/" + strings.Repeat("x", 1024-len("GET / HTTP/1.1\r\n")))},
	{name: "one byte longer", raw: get("/" + strings.Repeat("x", 1025-len("GET / HTTP/1.1\r\n")))},
	{name: "large header", raw: get("/x", "X-A: "+strings.Repeat("x", 3000))},
	{name: "line ends early", raw: "GET /half HT", end: true},
	{name: "header ends early", raw: "GET /half HTTP/1.1\r\nReferer: r\r\nHost:", end: true},
	{name: "line in time, header not", raw: "GET /late HTTP/1.1\r\nReferer: r\r\nHost:"},
	{name: "nothing", end: true},
}

// Names of hosts in the Host field and in absolute targets, but for those that nginx accepts before version 1.29.
const hostConf = `http { log_format h '$host "$request" $status'; access_log access.log h;
server { listen {{LISTEN}}; server_name first.example; error_page 400 /bad;
  location / { return 200 "$host $server_name"; }
  location = /bad { return 301 /redirect; } }
server { listen {{LISTEN}}; server_name second.example; location / { return 200 "second $host"; } } }
`

func hostSteps() (steps []step) {
	for _, host := range []string{"l", "SECOND.example", "second.example:80", "second.example.", "second.example.:80", "a:", "", ".", "..a", "a..b", "a/b",
		"[::1]", "[::1]:80", "[a..b]", "[a/b]", "[v1.a:b]", "a_b", "a~b!$&'()*+,;=%41"} {
		steps = append(steps, step{name: "field " + host, raw: "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"})
	}
	for _, host := range []string{"l", "SECOND.example", "second.example:80", "second.example.", "a:", "", ".", "a..b", "u@a", "a_b", "[::1]:80", "[::1].", "a:1:2", "a:x"} {
		steps = append(steps, step{name: "target " + host, raw: "GET http://" + host + "/ HTTP/1.1\r\nHost: l\r\n\r\n"})
	}
	for _, target := range []string{"*", "x", "http:/a", "http://", "HTTP+s-.1://a/", "1+://a"} {
		steps = append(steps, step{name: target, raw: "GET " + target + " HTTP/1.1\r\nHost: l\r\n\r\n"})
	}
	for _, method := range []string{"get", "Get", "M-SEARCH", "A_B", "A.B", "TRACE"} {
		steps = append(steps, step{name: method, raw: method + " / HTTP/1.1\r\nHost: l\r\n\r\n"})
	}
	return append(steps,
		step{name: "two Hosts", raw: "GET / HTTP/1.1\r\nHost: l\r\nHost: l\r\n\r\n"},
		step{name: "HTTP/1.0 without a Host", raw: "GET / HTTP/1.0\r\n\r\n"},
		step{name: "one long field", raw: get("/", "X-A: "+strings.Repeat("x", 9000))},
		step{name: "four long fields", raw: get("/", "X-A: "+strings.Repeat("x", 6000), "X-A: "+strings.Repeat("x", 6000), "X-A: "+strings.Repeat("x", 6000))})
}
