package e2e

import "maps"

// unixConf listens on TCP too, which shows when a server is up.
const unixConf = `http { default_type text/plain;
log_format long '$remote_addr [$remote_port] [$server_addr] [$server_port] [$realip_remote_addr] [$realip_remote_port] "$request" $status';
map $server_port $logged { "" 1; default 0; }
access_log access.log long if=$logged;
set_real_ip_from unix:; map $binary_remote_addr $binary { "unix:" unix; default other; }
geo $from { default outside; 127.0.0.0/8 inside; }
limit_req_zone $binary_remote_addr zone=a:1m rate=1r/m;
upstream hashed { ip_hash; server {{UP1}}; server {{UP2}}; server {{UP3}}; }
server { listen {{LISTEN}}; listen unix:{{DIR}}/front backlog=64 bind; server_name first;
  location / { return 200 "$remote_addr [$remote_port] [$server_addr] [$server_port] [$realip_remote_addr] [$realip_remote_port] $binary $from $host"; }
  location /p/ { proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; }
  location /hashed/ { proxy_pass http://hashed; }
  location /allowed/ { allow unix:; deny all; alias html/; }
  location /denied/ { deny unix:; alias html/; }
  location /after/ { deny all; allow unix:; alias html/; }
  location /net/ { allow 0.0.0.0/0; allow ::/0; deny all; alias html/; }
  location /nobody/ { deny all; alias html/; }
  location /inherited/ { allow 127.0.0.1; location /inherited/inner/ { deny unix:; alias html/; } alias html/; }
  location /limited/ { limit_req zone=a; alias html/; }
  location /moved { return 301 /there; }
  location /sub { alias html/sub; }
  location /files/ { alias html/; }
}
server { listen unix:{{DIR}}/front; server_name real; real_ip_header X-Forwarded-For;
  location / { return 200 "$remote_addr [$remote_port] [$realip_remote_addr] [$realip_remote_port] $binary $proxy_add_x_forwarded_for"; }
  location /allowed/ { allow unix:; deny all; alias html/; }
  location /net/ { allow 192.0.2.0/24; deny all; alias html/; }
}
server { listen unix:{{DIR}}/front; server_name deep; real_ip_header X-Forwarded-For; real_ip_recursive on; set_real_ip_from unix:; set_real_ip_from 10.0.0.0/8; return 200 "$remote_addr"; }
server { listen unix:{{DIR}}/front; server_name distrustful; real_ip_header X-Forwarded-For; set_real_ip_from 10.0.0.0/8; return 200 "$remote_addr"; }
server { listen unix:{{DIR}}/front default_server; server_name standard; return 200 "standard"; }
server { listen unix:{{DIR}}/told proxy_protocol; server_name told; real_ip_header proxy_protocol; return 200 "$remote_addr [$remote_port] $proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr [$realip_remote_addr] [$server_addr] [$server_port]"; }
server { listen UNIX:{{DIR}}/tls ssl http2; server_name first.example; ssl_certificate first.pem; ssl_certificate_key first.key; location / { return 200 "$remote_addr $scheme $host"; } location /moved { return 301 /there; } }
server { listen unix:{{DIR}}/tls ssl; server_name second.example; ssl_certificate second.pem; ssl_certificate_key second.key; return 200 "second $remote_addr"; }
}
`

func unixSteps() []step {
	var steps []step
	add := func(host, target, fields string) {
		steps = append(steps, step{name: host + target + " " + fields, raw: "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n", unix: "front"})
	}
	for _, target := range []string{"/", "/p/x", "/hashed/1", "/allowed/page.html", "/denied/page.html", "/after/page.html", "/net/page.html", "/nobody/page.html", "/inherited/page.html", "/inherited/inner/page.html", "/moved", "/sub", "/files/page.html", "/files/missing", "/limited/page.html", "/limited/page.html"} {
		add("first", target, "")
	}
	add("first", "/", "X-Real-IP: 192.0.2.1\r\n")
	add("first", "/p/x", "X-Forwarded-For: 192.0.2.1\r\n")
	add("nobody", "/", "")
	add("first:8080", "/moved", "")
	for _, host := range []string{"real", "deep", "distrustful"} {
		for _, field := range []string{"", "X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.1, 10.1.2.3\r\n", "X-Forwarded-For: 192.0.2.1:99\r\n", "X-Forwarded-For: unix:\r\n", "X-Forwarded-For: nonsense\r\n", "X-Forwarded-For: nonsense, 10.0.0.1\r\n"} {
			add(host, "/", field)
		}
	}
	for _, field := range []string{"", "X-Forwarded-For: 192.0.2.1\r\n"} {
		add("real", "/allowed/page.html", field)
		add("real", "/net/page.html", field)
	}
	for _, line := range []string{"PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\n", "PROXY UNKNOWN\r\n", ""} {
		steps = append(steps, step{name: "told " + line, raw: line + "GET / HTTP/1.1\r\nHost: told\r\n\r\n", unix: "told"})
	}
	return append(steps,
		step{name: "big response", raw: "GET /p/big HTTP/1.1\r\nHost: first\r\n\r\n", unix: "front"},
		step{name: "body", raw: "POST /p/x HTTP/1.1\r\nHost: first\r\nContent-Length: 5\r\n\r\nhello", methods: []string{"POST"}, unix: "front"},
		step{name: "without a Host", raw: "GET /moved HTTP/1.0\r\n\r\n", unix: "front"},
		step{name: "a client with a name", raw: "GET / HTTP/1.1\r\nHost: first\r\n\r\n", unix: "front", local: "client"},
		step{name: "TLS", raw: get("/"), unix: "tls", sni: "first.example"},
		step{name: "TLS, redirected", raw: "GET /moved HTTP/1.1\r\nHost: first.example\r\n\r\n", unix: "tls", sni: "first.example"},
		step{name: "TLS, another server", raw: "GET / HTTP/1.1\r\nHost: second.example\r\n\r\n", unix: "tls", sni: "second.example"},
		step{name: "over TCP, too", raw: "GET /p/x HTTP/1.1\r\nHost: first\r\n\r\n", local: "127.0.0.1"},
		step{name: "over TCP, not allowed", raw: "GET /allowed/page.html HTTP/1.1\r\nHost: first\r\n\r\n", local: "127.0.0.1"},
		step{name: "over TCP, not denied", raw: "GET /denied/page.html HTTP/1.1\r\nHost: first\r\n\r\n", local: "127.0.0.1"},
		step{name: "over TCP, not trusted", raw: "GET /nobody/ HTTP/1.1\r\nHost: first\r\nX-Real-IP: 192.0.2.1\r\n\r\n", local: "127.0.0.1"},
		step{name: "WebSocket", raw: "GET /p/ws HTTP/1.1\r\nHost: first\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + webSocketFrame, unix: "front"},
	)
}

// unixFiles are the pages and the certificates.
var unixFiles = func() map[string]string {
	files := certificates()
	maps.Copy(files, assets)
	return files
}()
