package e2e

import "strings"

// The bodies of requests: when they are read, where they are held, what upstreams and variables get of them. A file's name
// differs, how much was received of a response that is not shown is a matter of time, and a body that was received with the header is in memory in nginx however small the buffer.
const bodiesConf = `http { default_type text/plain; client_body_temp_path {{DIR}}/bodies;
map $request_body_file $in_file { "" no; default yes; }
map $upstream_bytes_received $received { ~^(63|90) "with a body or without"; default $upstream_bytes_received; }
map $request_body $shown { "" none; default $request_body; }
log_format bodies '"$request" $status "$shown" $in_file "$received"'; access_log access.log bodies;
upstream second { server {{DEAD}}; server {{UP2}}; }
server { listen {{LISTEN}}; proxy_http_version 1.1; client_body_buffer_size 8k; client_max_body_size 40k;
  add_header X-Body "$request_body" always; add_header X-In-File $in_file always;
  location / { proxy_pass http://{{UP1}}; }
  location /clean/ { client_body_in_file_only clean; proxy_pass http://{{UP1}}; }
  location /on/ { client_body_in_file_only on; proxy_pass http://{{UP1}}; }
  location /single/ { client_body_in_single_buffer on; proxy_pass http://{{UP1}}; }
  location /small/ { client_max_body_size 4; proxy_pass http://{{UP1}}; }
  location /small-page/ { client_max_body_size 4; error_page 413 = @page; proxy_pass http://{{UP1}}; }
  location @page { return 200 "too large"; }
  location /nobody/ { proxy_pass_request_body off; proxy_set_header Content-Length ""; proxy_pass http://{{UP1}}; }
  location /replaced/ { proxy_set_body "<$request_body>"; proxy_pass http://{{UP1}}; }
  location /second/ { proxy_pass http://second; }
  location /intercepted/ { proxy_intercept_errors on; error_page 404 = @other; proxy_pass http://{{UP1}}; }
  location @other { proxy_pass http://{{UP2}}; }
  location /shown/ { proxy_intercept_errors on; error_page 404 /body; proxy_pass http://{{UP1}}; }
  location /body { return 200 "<$request_body>"; }
  location /streamed/ { proxy_request_buffering off; proxy_pass http://{{UP1}}; }
  location /checked/ { auth_request /check; proxy_pass http://{{UP1}}; }
  location /check { return 204; }
} }
`

func bodiesSteps() (steps []step) {
	large := strings.Repeat("0123456789", 3000)
	for _, location := range []string{"/", "/clean/", "/on/", "/single/", "/small/", "/small-page/", "/nobody/", "/replaced/", "/second/", "/intercepted/404", "/shown/404", "/streamed/", "/checked/"} {
		if !strings.HasSuffix(location, "404") {
			location += "x"
		}
		post := func(name, body string, fields ...string) {
			steps = append(steps, step{name: name + " to " + location, raw: request("POST", location, body, fields...), methods: []string{"POST"}})
		}
		post("none", "")
		post("empty", "", "Content-Length: 0")
		post("known length", "hello", "Content-Length: 5")
		post("chunked", "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
		if location != "/streamed/x" && !strings.HasPrefix(location, "/small") {
			post("large", large, "Content-Length: 30000")
			post("large and chunked", "7530\r\n"+large+"\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
		}
		if location != "/streamed/x" {
			post("malformed", "5\r\nhello!\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
		}
		post("expected", "hello", "Content-Length: 5", "Expect: 100-continue")
		post("expected and empty", "", "Content-Length: 0", "Expect: 100-continue")
	}
	return append(steps, step{name: "several on one connection", methods: []string{"POST", "POST", "POST"},
		raw: request("POST", "/x", "hello", "Content-Length: 5") + request("POST", "/x", "5\r\nthere\r\n0\r\n\r\n", "Transfer-Encoding: chunked") + request("POST", "/on/x", "last", "Content-Length: 4")})
}
