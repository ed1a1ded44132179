package e2e

const subConf = `http { access_log off; types { text/html html; text/css css; }
server { listen {{LISTEN}}; root html;
  location / { sub_filter "</head>" "<script src=/x.js></script></head>"; sub_filter one "$host"; proxy_pass http://{{UP1}}; proxy_set_header Accept-Encoding ""; }
  location /every/ { sub_filter_once off; sub_filter ONE 1; sub_filter two $arg_two; proxy_pass http://{{UP1}}; }
  location /types/ { sub_filter_types text/css; sub_filter red blue; alias html/; }
  location /all/ { sub_filter_types *; sub_filter e E; sub_filter_once off; alias html/; }
  location /modified/ { sub_filter_last_modified on; sub_filter h1 h2; sub_filter_once off; alias html/; }
  location /longer/ { sub_filter ind IND; sub_filter index xedni; sub_filter_once off; alias html/; }
} }
`

var subSteps = append(gets("/html", "/x", "/410", "/every/html?two=2", "/every/html", "/types/style.css", "/types/page.html", "/all/page.html", "/all/data.bin", "/modified/page.html", "/longer/index.html", "/gzipped"),
	step{name: "HEAD", raw: request("HEAD", "/html", ""), methods: []string{"HEAD"}},
	step{name: "range", raw: get("/all/page.html", "Range: bytes=0-3")},
)

const contentConf = `http { access_log off; types { text/html html; text/css css; application/json json; }
charset utf-8;
server { listen {{LISTEN}}; root html; default_type text/plain;
  location /none/ { charset off; alias html/; }
  location /types/ { charset_types application/json text/css; alias html/; }
  location /up/ { proxy_pass http://{{UP1}}/; }
  location = /text { return 200 "text"; }
  location /gunzip/ { gunzip on; proxy_pass http://{{UP1}}/; }
  location /static/ { gzip_static on; alias html/; }
  location /always/ { gzip_static always; alias html/; }
  location /before/ { if_modified_since before; alias html/; }
  location /nosince/ { if_modified_since off; alias html/; }
  location /noetag/ { etag off; alias html/; }
  location /trailers/ { add_trailer X-Sum "$request_method done"; add_trailer X-Always yes always; proxy_pass http://{{UP1}}/; }
  location /status { stub_status; }
  location /keep/ { keepalive_timeout 30s 20s; alias html/; }
  location /nokeep/ { keepalive_timeout 0; alias html/; }
  location /referer/ { valid_referers none blocked server_names *.example.org www.example.com/galleries/ ~\.google\.; if ($invalid_referer) { return 403; } alias html/; }
  location /strict/ { valid_referers good.example; if ($invalid_referer) { return 403; } alias html/; }
  location /uid/ { userid on; userid_name id; userid_domain example.org; userid_path /p; userid_expires max; userid_p3p 'policyref="/w3c/p3p.xml"'; return 200 "got $uid_got"; }
} }
`

var contentFiles = func() map[string]string {
	files := map[string]string{"html/app.js.gz": gzipped, "html/page.html.gz": gzipped, "html/page.json": "{}"}
	for name, content := range assets {
		files[name] = content
	}
	return files
}()

var contentSteps = func() []step {
	steps := gets("/page.html", "/none/page.html", "/style.css", "/types/style.css", "/types/page.json", "/types/page.html", "/up/html", "/up/x", "/text", "/missing", "/gunzip/gzipped", "/gunzip/html",
		"/static/page.html", "/static/style.css", "/always/page.html", "/always/app.js", "/noetag/page.html", "/trailers/x", "/trailers/404", "/trailers/chunked", "/keep/page.html", "/nokeep/page.html", "/uid/x")
	for _, target := range []string{"/static/page.html", "/gunzip/gzipped", "/static/app.js"} {
		steps = append(steps, step{name: target + " in gzip", raw: get(target, "Accept-Encoding: gzip")})
	}
	for _, target := range []string{"/page.html", "/before/page.html", "/nosince/page.html"} {
		for _, since := range []string{"Tue, 14 Nov 2023 22:13:19 GMT", "Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 22:13:21 GMT"} {
			steps = append(steps, step{name: target + " since " + since, raw: get(target, "If-Modified-Since: "+since)})
		}
	}
	for _, referer := range []string{"", "garbage", "http://a.example.org/x", "https://example.org/", "http://www.example.com/", "http://www.example.com/galleries/1", "http://www.google.de/", "http://evil/", "http://good.example", "https://GOOD.example:99/x"} {
		lines := []string{"Referer: " + referer}
		if referer == "" {
			lines = nil
		}
		steps = append(steps, step{name: "referer " + referer, raw: get("/referer/page.html", lines...)}, step{name: "strict " + referer, raw: get("/strict/page.html", lines...)})
	}
	return append(steps,
		step{name: "range of a compressed file", raw: get("/static/page.html", "Accept-Encoding: gzip", "Range: bytes=0-3")},
		step{name: "no range beside trailers", raw: request("HEAD", "/trailers/x", ""), methods: []string{"HEAD"}},
		step{name: "trailers in HTTP/1.0", raw: "GET /trailers/x HTTP/1.0\r\n\r\n"},
		step{name: "known user", raw: get("/uid/x", "Cookie: id=fwAAAWsCAVAXb1cFAwMDAg==")},
		step{name: "status", raw: request("POST", "/status", "", "Content-Length: 0"), methods: []string{"POST"}},
	)
}()

const geoConf = `http { access_log off; default_type text/plain;
geo $net { default none; 127.0.0.1 one; 127.0.0.2/31 two; 127.0.0.0/8 loop; 192.0.2.0/24 doc; 2001:db8::/32 six; 127.0.0.3 three; delete 127.0.0.3; include geo.conf; }
geo $arg_ip $named { default none; 10.0.0.0/8 ten; 2001:db8::/32 six; }
geo $ranged { ranges; default none; 127.0.0.0-127.0.0.1 low; 127.0.0.2-127.0.0.255 high; }
geo $behind { proxy 127.0.0.0/8; default none; 192.0.2.1 client; 127.0.0.0/8 self; }
geo $behind_all { proxy 127.0.0.0/8; proxy 10.0.0.0/8; proxy_recursive; default none; 192.0.2.1 client; }
map $net $mapped { one 1; default $named; }
split_clients "$arg_id" $variant { 10% a; 20.5% b; * c; }
split_clients "${arg_id}x" $half { 50% yes; }
server { listen {{LISTEN}}; return 200 "$net $named $ranged $behind $behind_all $mapped $variant $half"; } }
`

var geoSteps = func() []step {
	var steps []step
	for _, local := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.9"} {
		steps = append(steps, step{name: local, raw: get("/?ip=10.1.2.3"), local: local})
	}
	for _, id := range []string{"", "a", "b", "abc", "abcd", "abcde", "user-1", "user-2", "user-3", "user-4", "user-5", "user-6", "user-77", "user-888", "0123456789"} {
		steps = append(steps, step{name: "id " + id, raw: get("/?ip=2001:db8::1&id=" + id), local: "127.0.0.1"})
	}
	return append(steps,
		step{name: "behind", raw: get("/?ip=x", "X-Forwarded-For: 192.0.2.1"), local: "127.0.0.1"},
		step{name: "behind two", raw: get("/", "X-Forwarded-For: 192.0.2.1, 10.0.0.1"), local: "127.0.0.1"},
	)
}()

const clientCertificateConf = `http { access_log off; default_type text/plain; ssl_certificate first.example.pem; ssl_certificate_key first.example.key; ssl_client_certificate ca.pem;
server { listen {{LISTEN}} ssl; server_name must.example; ssl_verify_client on; error_page 495 496 =403 @refused;
  location / { return 200 "$ssl_client_verify $ssl_client_s_dn $ssl_client_i_dn $ssl_client_s_dn_legacy $ssl_client_i_dn_legacy $ssl_client_serial"; }
  location /up/ { proxy_pass http://{{UP1}}; proxy_set_header X-Client $ssl_client_s_dn; proxy_set_header X-Cert $ssl_client_escaped_cert; proxy_set_header X-Fingerprint $ssl_client_fingerprint; }
  location @refused { return 403 "refused $ssl_client_verify"; } }
server { listen {{LISTEN}} ssl; server_name plainmust.example; ssl_verify_client on; return 200 "in"; }
server { listen {{LISTEN}} ssl; server_name may.example; ssl_verify_client optional; return 200 "$ssl_client_verify $ssl_client_s_dn"; }
server { listen {{LISTEN}} ssl; server_name any.example; ssl_verify_client optional_no_ca; return 200 "$ssl_client_s_dn"; }
server { listen {{LISTEN}} ssl; server_name open.example; return 200 "open"; }
}
`

var clientCertificateSteps = func() []step {
	var steps []step
	for _, host := range []string{"must.example", "plainmust.example", "may.example", "any.example", "open.example"} {
		for _, cert := range []string{"", "client.example", "stranger"} {
			steps = append(steps, step{name: host + " " + cert, sni: host, cert: cert, raw: "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"})
		}
	}
	return append(steps,
		step{name: "upstream", sni: "must.example", cert: "client.example", raw: "GET /up/ HTTP/1.1\r\nHost: must.example\r\n\r\n"},
		step{name: "another name than that of the handshake", sni: "open.example", raw: "GET / HTTP/1.1\r\nHost: must.example\r\n\r\n"},
		step{name: "an open name after a handshake with a certificate", sni: "must.example", cert: "client.example", raw: "GET / HTTP/1.1\r\nHost: open.example\r\n\r\n"},
	)
}()

const proxyProtocolConf = `http { access_log off; default_type text/plain; set_real_ip_from 127.0.0.0/8;
server { listen {{LISTEN}} proxy_protocol; server_name plain; return 200 "$remote_addr $proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr"; }
server { listen {{LISTEN}} proxy_protocol; server_name real; real_ip_header proxy_protocol; location / { return 200 "$remote_addr $realip_remote_addr"; } location /p/ { proxy_pass http://{{UP1}}; proxy_set_header X-Real-IP $remote_addr; } }
}
`

var proxyProtocolSteps = func() []step {
	var steps []step
	for _, host := range []string{"plain", "real"} {
		for _, line := range []string{"PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\n", "PROXY TCP6 2001:db8::1 2001:db8::2 4711 80\r\n", "PROXY UNKNOWN\r\n", "", "PROXY nonsense\r\n"} {
			steps = append(steps, step{name: host + " " + line, raw: line + "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n", local: "127.0.0.1"})
		}
	}
	return append(steps, step{name: "to an upstream", raw: "PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\nGET /p/x HTTP/1.1\r\nHost: real\r\n\r\n", local: "127.0.0.1"})
}()
