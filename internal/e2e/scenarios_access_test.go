package e2e

import "encoding/base64"

const gzipConf = `http { access_log off; default_type text/plain; gzip on; gzip_vary on; gzip_min_length 10; gzip_types text/css application/json;
types { text/html html; text/css css; application/octet-stream bin; }
server { listen {{LISTEN}}; root html;
  location = /long { default_type text/html; return 200 "a long text, a long text, a long text, a long text"; }
  location = /short { default_type text/html; return 200 "short"; }
  location = /json { default_type application/json; return 200 "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"; }
  location = /plain { return 200 "a long text, a long text, a long text, a long text"; }
  location = /410 { default_type text/html; return 410 "gone, gone, gone, gone, gone, gone, gone, gone"; }
  location /off/ { gzip off; alias html/; }
  location /tooff/ { try_files /none /off/style.css; }
  location /toon/ { gzip off; try_files /none /style.css; }
  location /min/ { gzip_min_length 1k; alias html/; }
  location /any/ { gzip_types *; gzip_proxied any; alias html/; }
  location /some/ { gzip_proxied no-cache auth; default_type text/html; expires -1; return 200 "a long text, a long text, a long text, a long text"; }
  location /old/ { gzip_http_version 1.0; alias html/; }
  location /agent/ { gzip_disable "msie6" "bad(bot|one)"; alias html/; }
  location /up/ { proxy_pass http://{{UP1}}; }
} }
`

var gzipSteps = func() []step {
	var steps []step
	for _, target := range []string{"/long", "/short", "/json", "/plain", "/410", "/page.html", "/style.css", "/data.bin", "/missing", "/off/style.css", "/tooff/", "/toon/", "/min/style.css", "/min/data.bin", "/any/data.bin"} {
		steps = append(steps, step{name: target, raw: get(target, "Accept-Encoding: gzip")})
	}
	return append(steps,
		step{name: "not requested", raw: get("/long")},
		step{name: "others", raw: get("/long", "Accept-Encoding: br, deflate")},
		step{name: "among others", raw: get("/long", "Accept-Encoding: br, gzip;q=0.8, deflate")},
		step{name: "refused", raw: get("/long", "Accept-Encoding: gzip;q=0")},
		step{name: "HEAD", raw: request("HEAD", "/style.css", "", "Accept-Encoding: gzip"), methods: []string{"HEAD"}},
		step{name: "range", raw: get("/style.css", "Accept-Encoding: gzip", "Range: bytes=0-3")},
		step{name: "for a proxy", raw: get("/long", "Accept-Encoding: gzip", "Via: 1.1 proxy")},
		step{name: "for any proxy", raw: get("/any/style.css", "Accept-Encoding: gzip", "Via: 1.1 proxy")},
		step{name: "for a proxy that must not keep it", raw: get("/some/", "Accept-Encoding: gzip", "Via: 1.1 proxy")},
		step{name: "for a proxy with credentials", raw: get("/some/", "Accept-Encoding: gzip", "Via: 1.1 proxy", "Authorization: Basic x")},
		step{name: "HTTP/1.0", raw: "GET /style.css HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"},
		step{name: "HTTP/1.0 allowed", raw: "GET /old/style.css HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"},
		step{name: "disabled", raw: get("/agent/style.css", "Accept-Encoding: gzip", "User-Agent: BadBot/1.0")},
		step{name: "not disabled", raw: get("/agent/style.css", "Accept-Encoding: gzip", "User-Agent: good")},
		step{name: "of an upstream", raw: get("/up/x", "Accept-Encoding: gzip")},
	)
}()

const accessConf = `http { access_log off; default_type text/plain; error_page 403 /denied;
server { listen {{LISTEN}}; root html; deny 127.0.0.3;
  location / { allow all; root html; }
  location /inherited/ { alias html/; }
  location /only/ { allow 127.0.0.2; deny all; alias html/; }
  location /net/ { deny 127.0.0.2/31; allow 127.0.0.0/8; deny all; alias html/; }
  location /none/ { deny all; alias html/; }
  location /six/ { allow ::1; deny all; alias html/; }
  location /returned/ { deny all; return 200 "before"; }
  location = /denied { allow all; return 403 "denied"; }
} }
`

var accessSteps = func() []step {
	var steps []step
	for _, local := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		for _, target := range []string{"/page.html", "/inherited/page.html", "/only/page.html", "/net/page.html", "/none/page.html", "/six/page.html", "/returned/"} {
			steps = append(steps, step{name: local + target, raw: get(target), local: local})
		}
	}
	return steps
}()

const authConf = `http { access_log off; default_type text/plain; auth_basic_user_file {{DIR}}/users;
server { listen {{LISTEN}}; auth_basic "a realm"; root html;
  location / { root html; }
  location /open/ { auth_basic off; alias html/; }
  location /realm/ { auth_basic "for $host"; alias html/; }
  location /nofile/ { auth_basic_user_file {{DIR}}/none; alias html/; }
  location /any/ { satisfy any; allow 127.0.0.2; deny all; alias html/; }
  location /all/ { allow 127.0.0.2; deny all; alias html/; }
} }
`

// authFiles has the password "secret" in the ways that nginx knows.
var authFiles = func() map[string]string {
	files := map[string]string{}
	for name, content := range assets {
		files[name] = content
	}
	files["users"] = `# a comment
plain:{PLAIN}secret
sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=
ssha:{SSHA}` + ssha("secret", "salt") + `
apr1:$apr1$salt$VEpBc9VHGUKwI9.yg13Iu0:and a comment
md5:$1$salt$ez2vlPGdaLYkJam5pWs/Y1
clear:secret
twice:{PLAIN}secret
twice:{PLAIN}wrong
 spaced:{PLAIN}secret
trailing:{PLAIN}secret 
prefix:{PLAIN}{PLAIN}secret
`
	return files
}()

func credentials(text string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(text))
}

func authSteps() []step {
	steps := gets("/page.html", "/open/page.html", "/realm/page.html", "/nofile/page.html", "/missing")
	for _, user := range []string{"plain", "sha", "ssha", "apr1", "md5", "clear", "twice", "spaced", " spaced", "trailing", "prefix", "nobody"} {
		for _, password := range []string{"secret", "secret ", "{PLAIN}secret", "wrong", ""} {
			steps = append(steps, step{name: user + " " + password, raw: get("/page.html", credentials(user+":"+password))})
		}
	}
	steps = append(steps,
		step{name: "no colon", raw: get("/page.html", credentials("plain"))},
		step{name: "no base64", raw: get("/page.html", "Authorization: Basic !")},
		step{name: "another scheme", raw: get("/page.html", "Authorization: Bearer x")},
		step{name: "nofile", raw: get("/nofile/page.html", credentials("plain:secret"))},
	)
	for _, local := range []string{"127.0.0.1", "127.0.0.2"} {
		for _, target := range []string{"/any/page.html", "/all/page.html"} {
			steps = append(steps, step{name: local + target, raw: get(target), local: local}, step{name: local + target + " with a password", raw: get(target, credentials("plain:secret")), local: local})
		}
	}
	return steps
}

const realIPConf = `http { access_log off; default_type text/plain; set_real_ip_from 127.0.0.1; map $remote_port $port { "" none; ~^(4711|99)$ $remote_port; default some; } set_real_ip_from 10.0.0.0/8; limit_req_zone $remote_addr zone=clients:1m rate=1r/m; log_format who "$request $remote_addr $realip_remote_addr";
server { listen {{LISTEN}}; return 200 "$remote_addr of $realip_remote_addr, $proxy_add_x_forwarded_for"; }
server { listen {{LISTEN}}; server_name list; real_ip_header X-Forwarded-For; location / { return 200 "$remote_addr $port of $realip_remote_addr"; } location /p/ { proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } location /only/ { allow 192.0.2.1; deny all; return 404; root html; } }
server { listen {{LISTEN}}; server_name deep; real_ip_header X-Forwarded-For; real_ip_recursive on; return 200 "$remote_addr $port"; }
server { listen {{LISTEN}}; server_name other; set_real_ip_from 127.0.0.2; real_ip_header X-Client; return 200 "$remote_addr"; }
server { listen {{LISTEN}}; server_name inner; access_log access.log who; set_real_ip_from 127.0.0.77; root html;
  location /seen/ { set_real_ip_from 127.0.0.1; add_header X-At "$remote_addr $realip_remote_addr $port" always; try_files /none =404; }
  location /only/ { set_real_ip_from 127.0.0.1; real_ip_header X-Client; allow 192.0.2.1; deny all; try_files /none =404; }
  location /denied/ { set_real_ip_from 127.0.0.1; deny 192.0.2.1; try_files /none =404; }
  location /deep/ { set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on; proxy_pass http://{{UP1}}; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Peer $realip_remote_addr; }
  location /limited/ { set_real_ip_from 127.0.0.1; limit_req zone=clients; try_files /none =404; }
  location /named/ { set_real_ip_from 127.0.0.1; try_files /none @named; }
  location /late/ { try_files /none @late; }
  location /first/ { set_real_ip_from 127.0.0.1; try_files /none @other; }
  location @named { proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; }
  location @late { set_real_ip_from 127.0.0.1; allow 192.0.2.1; deny all; proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; }
  location @other { set_real_ip_from 127.0.0.1; real_ip_header X-Client; proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; }
  location /asks/ { access_log off; auth_request /checks/; proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; }
  location /checks/ { set_real_ip_from 127.0.0.1; proxy_pass http://{{UP2}}; proxy_set_header X-Real-IP $remote_addr; }
}
}
`

var realIPSteps = func() []step {
	var steps []step
	for _, host := range []string{"any", "list", "deep", "other"} {
		for _, fields := range []string{"", "X-Real-IP: 192.0.2.1", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.1, 10.1.2.3", "X-Forwarded-For: 192.0.2.1:4711", "X-Forwarded-For: [2001:db8::1]:99, 10.0.0.1", "X-Forwarded-For: 10.0.0.1, 10.0.0.2",
			"X-Forwarded-For: nonsense", "X-Forwarded-For: 192.0.2.1, nonsense", "X-Forwarded-For: nonsense, 10.0.0.1", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2", "X-Client: 192.0.2.9"} {
			if fields != "" {
				fields += "\r\n"
			}
			for _, local := range []string{"127.0.0.1", "127.0.0.2"} {
				steps = append(steps, step{name: host + " " + local + " " + fields, raw: "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n", local: local})
			}
		}
	}
	for _, path := range []string{"/seen/", "/only/", "/denied/", "/deep/", "/limited/", "/limited/", "/named/", "/late/", "/first/", "/asks/"} {
		for _, fields := range []string{"", "X-Real-IP: 192.0.2.1\r\n", "X-Client: 192.0.2.1\r\n", "X-Real-IP: 192.0.2.2\r\nX-Client: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.1:4711, 10.1.2.3\r\n"} {
			for _, local := range []string{"127.0.0.1", "127.0.0.2"} {
				steps = append(steps, step{name: "inner " + path + " " + local + " " + fields, raw: "GET " + path + " HTTP/1.1\r\nHost: inner\r\n" + fields + "\r\n", local: local})
			}
		}
	}
	for _, path := range []string{"/p/", "/only/x"} {
		steps = append(steps, step{name: path, raw: "GET " + path + " HTTP/1.1\r\nHost: list\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n", local: "127.0.0.1"})
	}
	return steps
}()
