package engine_test

import (
	"strings"
	"testing"
)

// gzip_vary adds a line of its own, as in nginx; without it a response that depends on the client has Vary all the same, once.
func TestGzipVary(t *testing.T) {
	const response = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nX-A: a\r\n%Content-Length: 5\r\n\r\nhello"
	varying := raw(t, strings.Replace(response, "%", "Vary: accept-encoding\r\n", 1))
	other := raw(t, strings.Replace(response, "%", "Vary: Cookie\r\n", 1))
	silent := raw(t, strings.Replace(response, "%", "", 1))
	s := serve(t, server(strings.NewReplacer("VARYING", varying, "OTHER", other, "SILENT", silent).Replace(`gzip on; gzip_min_length 1;
		location /varying { proxy_pass http://VARYING; location /varying/on { gzip_vary on; proxy_pass http://VARYING; } location /varying/off { gzip_vary off; proxy_pass http://VARYING; } }
		location /other { proxy_pass http://OTHER; }
		location /silent { proxy_pass http://SILENT; location /silent/on { gzip_vary on; proxy_pass http://SILENT; } location /silent/off { gzip_vary off; proxy_pass http://SILENT; } }
		location /plain { gzip off; gzip_vary on; proxy_pass http://SILENT; }`)))
	for target, want := range map[string]string{
		"/varying": "X-A: a|Vary: accept-encoding", "/varying/on": "Vary: Accept-Encoding|X-A: a|Vary: accept-encoding", "/varying/off": "X-A: a|Vary: accept-encoding",
		"/other": "Vary: Accept-Encoding|X-A: a|Vary: Cookie", "/silent": "Vary: Accept-Encoding|X-A: a", "/silent/on": "Vary: Accept-Encoding|X-A: a", "/silent/off": "X-A: a",
		"/plain": "X-A: a",
	} {
		for _, accept := range []string{"gzip", "br", "gzip;q=0"} {
			var got []string
			for line := range strings.SplitSeq(s.header("GET "+target+" HTTP/1.1\r\nHost: a\r\nAccept-Encoding: "+accept+"\r\n\r\n"), "\r\n") {
				if strings.HasPrefix(line, "Vary:") || strings.HasPrefix(line, "X-A:") {
					got = append(got, line)
				}
			}
			equal(t, target+" "+accept, strings.Join(got, "|"), want)
		}
	}
}

// A file that only clients that accept gzip are sent leads others to an error page, with the Vary of its own.
func TestVaryOfAnErrorPage(t *testing.T) {
	app := raw(t, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nVary: Cookie\r\nContent-Length: 5\r\n\r\nhello")
	for _, gzip := range []string{"on", "off"} {
		s := serve(t, with(server(`root html; gzip `+gzip+`; gzip_static on; error_page 404 = @app; location @app { proxy_pass http://`+app+`; }`), "html/a.gz", "compressed"))
		equal(t, gzip, strings.Join(s.get("/a").Header["Vary"], "|"), "Accept-Encoding|Cookie")
		equal(t, gzip, strings.Join(s.get("/a", "Accept-Encoding: gzip").Header["Vary"], "|"), "Accept-Encoding")
	}
}
