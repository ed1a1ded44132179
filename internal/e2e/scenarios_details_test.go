package e2e

// Details of single directives, each of which nginx's own tests look at.
const detailsConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}}; root html;
  location /a { rewrite ^ /b; break; proxy_pass http://{{UP1}}/c; }
  location /f { break; proxy_pass http://{{UP1}}/c; }
  location /405 { error_page 405 /none; return 405; }
  location /none { return 204; }
  location /vars/ { alias html/; try_files $uri $uri/ =404; }
  location /constant/ { alias html; try_files /page.html =404; }
  location ~ ^/pattern/ { alias html; try_files /sub$uri /page.html =404; }
  location ~ ^/dir/ { alias html/sub/; try_files / =404; }
  location /quiet/ { log_not_found off; }
  location = /data.bin { add_header Last-Modified "Mon, 28 Sep 1970 06:00:00 GMT"; }
  location /hidden/ { alias html/; add_header Last-Modified ""; }
  location /sub { auth_request /check; root html; }
  location /check { log_subrequest on; access_log subrequests.log; return 403; }
  location /uid/ { userid on; userid_name id; userid_flags samesite=lax secure httponly; return 200 $uid_got; }
  location /referer/none { valid_referers none a.test; return 200 "$invalid_referer"; }
  location /referer/blocked { valid_referers blocked a.test; return 200 "$invalid_referer"; }
  location /referer/names { valid_referers a.test/b ex.*; return 200 "$invalid_referer"; } } }
`

// A variable of a field stands for names with underscores, too.
const underscoresConf = `http { access_log off; default_type text/plain; underscores_in_headers on;
server { listen {{LISTEN}}; location / { return 200 "$http_x_foo $http_x_real_name $http_x_none"; } } }
`

var underscoresSteps = []step{
	{name: "underscores", raw: get("/", "X_Foo: a", "x-real_name: b")},
	{name: "dashes", raw: get("/", "X-Foo: a", "x-real-name: b")},
	{name: "neither", raw: get("/")},
}

var detailsSteps = append(fieldSteps(), gets("/a/x", "/f/x", "/405", "/none", "/vars/page.html", "/vars/none", "/vars/sub/index.html", "/constant/x", "/constant/", "/pattern/x",
	"/pattern/page.html", "/dir/x", "/quiet/none", "/uid/x", "/sub")...)

func fieldSteps() (steps []step) {
	for _, target := range []string{"/data.bin", "/hidden/data.bin"} {
		for _, date := range []string{"Mon, 28 Sep 1970 06:00:00 GMT", "Tue, 14 Nov 2023 22:13:20 GMT"} {
			steps = append(steps, step{name: target + " " + date, raw: get(target, "Range: bytes=0-3", "If-Range: "+date)})
		}
	}
	for _, target := range []string{"/referer/none", "/referer/blocked", "/referer/names"} {
		steps = append(steps, step{name: target, raw: get(target)})
		for _, field := range []string{"", "http://a.test", "HTTPS://A.test/b?c", "http://a.test:80/bc", "http://a.test?/b", "http://su", "***", "http://ex.a/"} {
			steps = append(steps, step{name: target + " " + field, raw: get(target, "Referer: "+field)})
		}
	}
	return steps
}
