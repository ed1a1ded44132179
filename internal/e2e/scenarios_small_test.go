package e2e

// Directives of one line each.
const smallConf = `http { access_log off; types { text/html html; }
geo $arg_ip $network { 192.0.2.1 first; 192.0.2.2 second; }
server { listen {{LISTEN}}; root html;
  location /whole/ { max_ranges 0; alias html/; }
  location /forced/ { proxy_pass http://{{LISTEN}}/whole/; proxy_force_ranges on; }
  location /forced/none/ { proxy_pass http://{{LISTEN}}/whole/; proxy_force_ranges on; max_ranges 0; }
  location /unforced/ { proxy_pass http://{{LISTEN}}/whole/; }
  location /trailers/ { proxy_pass http://{{LISTEN}}/whole/; proxy_force_ranges on; add_trailer X-Trailer ""; }
  location /up/ { proxy_pass http://{{UP1}}/; proxy_force_ranges on; }
  location /refresh/ { msie_refresh on; return 302 /a"b%c; }
  location /refresh/301 { msie_refresh on; return 301 http://a.test/; }
  location /refresh/307 { msie_refresh on; return 307 /a; }
  location /refresh/page { msie_refresh on; error_page 404 http://a.test/b; return 404; }
  location /refresh/off { return 301 /a; }
  location /after { post_action /posted; return 200 content; }
  location /after/named { post_action @posted; return 404 content; }
  location = /posted { internal; proxy_set_header X-After "$status $body_bytes_sent"; proxy_pass http://{{UP1}}; }
  location @posted { proxy_set_header X-After "$status $body_bytes_sent"; proxy_pass http://{{UP2}}; }
  location /parents/ { alias html/sub/../; }
  location /links/ { disable_symlinks on; alias html/./sub/..//; }
  location /site/ { root html/sub/../..; rewrite ^/site(.*)$ /html$1 break; }
  location /geo { set $before $network; set $args ip=192.0.2.2; return 200 "$before $network"; }
} }
`

var smallSteps = func() (steps []step) {
	for _, target := range []string{"/forced/data.bin", "/forced/none/data.bin", "/unforced/data.bin", "/trailers/data.bin", "/up/html", "/up/chunked", "/up/404", "/forced/missing"} {
		for _, span := range []string{"bytes=4-9", "bytes=990-", "bytes=-3", "bytes=0-1,4-5", "bytes=1000-", "bytes=x", "bytes=0-0"} {
			steps = append(steps, step{name: target + " " + span, raw: get(target, "Range: "+span)})
		}
		steps = append(steps, step{name: target + " HEAD", raw: request("HEAD", target, "", "Range: bytes=4-9"), methods: []string{"HEAD"}})
	}
	for _, date := range []string{"Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 22:13:21 GMT"} {
		steps = append(steps, step{name: "If-Range " + date, raw: get("/forced/data.bin", "Range: bytes=4-9", "If-Range: "+date)})
	}
	for _, target := range []string{"/refresh/", "/refresh/301", "/refresh/307", "/refresh/page", "/refresh/off"} {
		for _, agent := range []string{"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", "MSIE 6", "Opera (MSIE 6.0)", "curl"} {
			steps = append(steps, step{name: target + " " + agent, raw: get(target, "User-Agent: "+agent)})
		}
	}
	steps = append(steps, gets("/parents/page.html", "/links/page.html", "/site/page.html")...)
	return append(steps, step{name: "action", raw: get("/after?a=b"), copies: 1}, step{name: "named action", raw: get("/after/named?a=b"), copies: 1},
		step{name: "geo", raw: get("/geo?ip=192.0.2.1")})
}()
