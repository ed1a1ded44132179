package engine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Regular expressions with look-around and back references stand wherever nginx has regular expressions, with their captures.
func TestLookAround(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://old.test/x/y")
		w.Header().Set("Set-Cookie", "a=b; Path=/x/y")
		w.WriteHeader(http.StatusFound)
	}))
	defer target.Close()
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		map $arg_m $mapped { default none; ~^(?<letter>[a-z])\k<letter>(?!x) "twice $letter"; }
		server { server_name other; return 200 other; }
		server {
			server_name ~^(?<sub>[a-z]+)(?<!www)\.test$;
			add_header X-Mapped $mapped;
			location ~ "^/(?<year>\d{4})-(?<month>\d\d)(?!\d)(.*)$" { return 200 "$year $month $3"; }
			location ~* ^/(?=CASE).*$ { return 200 "no case"; }
			location /if { if ($http_user_agent ~ "^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$" ) { return 404; } return 200 "not docker"; }
			location /rewrite { rewrite ^/rewrite/(\w)\1$ /rewritten/$1? last; return 200 "not rewritten"; }
			location /rewritten { return 200 $uri; }
			location /referer { valid_referers none server_names ~good(?!bad); if ($invalid_referer) { return 403; } return 200 valid; }
			location /proxy {
				proxy_pass ` + target.URL + `;
				proxy_redirect ~^http://old(?=\.test)[^/]*/(.)/ /new/$1/;
				proxy_cookie_path ~^/(?!y)(.)/ /cookie/$1/;
			}
			location / { return 200 $sub; }
		} }`})
	get := func(target string, fields ...string) response {
		return s.get(target, append(fields, "Host: abc.test")...)
	}
	for target, want := range map[string]string{
		"/2026-11x":   "2026 11 x",
		"/2026-112":   "abc",
		"/case":       "no case",
		"/rewrite/aa": "/rewritten/a",
		"/rewrite/ab": "not rewritten",
		"/if":         "not docker",
		"/other":      "abc",
	} {
		equal(t, target, get(target).body, want)
	}
	for agent, want := range map[string]int{"docker/1.4.0": 404, "docker/1.5.0": 404, "docker/1.5.0-dev": 200, "Go 1.1 package http": 404, "curl": 200} {
		equal(t, agent, get("/if", "User-Agent: "+agent).StatusCode, want)
	}
	for referer, want := range map[string]int{"http://good/": 200, "http://goodbad/": 403} {
		equal(t, referer, get("/referer", "Referer: "+referer).StatusCode, want)
	}
	equal(t, "a name that the server's excludes", s.get("/", "Host: xwww.test").body, "other")
	equal(t, "a map", get("/?m=aab").Header.Get("X-Mapped"), "twice a")
	equal(t, "a map's default", get("/?m=aax").Header.Get("X-Mapped"), "none")
	proxied := get("/proxy")
	equal(t, "proxy_redirect", strings.HasSuffix(proxied.Header.Get("Location"), "/new/x/"), true)
	equal(t, "proxy_cookie_path", proxied.Header.Get("Set-Cookie"), "a=b; Path=/cookie/x/")
}

// A match that takes too long makes the request fail, regardless of what it was for: nothing is served, and nothing is sent to an
// upstream.
func TestPatternsFailClosed(t *testing.T) {
	asked := false
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer target.Close()
	const slow = `^(?!x)/?(a+)+$`
	s := serve(t, map[string]string{"e.html": "page", "nginx.conf": `events {} http {
		map $arg_x $role { default admin; ~` + slow + ` user; }
		upstream u { server ` + strings.TrimPrefix(target.URL, "http://") + `; }
		server {
			error_page 500 /e.html; root .;
			location = /e.html { }
			location = /if { if ($arg_x !~ ` + slow + `) { return 200 served; } return 204; }
			location = /map { if ($role = admin) { return 200 served; } return 204; }
			location = /proxy { proxy_set_header X-Role $role; proxy_pass http://u; }
			location = /fastcgi { fastcgi_param ROLE $role; fastcgi_pass u; }
			location = /referer { valid_referers none server_names ~` + slow + `; if ($invalid_referer) { return 204; } return 200 served; }
			location / { location ~ ` + slow + ` { } return 200 served; }
		}
		server { server_name ~^(?!x)(a+)+$; return 200 other; }
		}`})
	long := strings.Repeat("a", 60) + "!"
	for _, path := range []string{"/if?x=" + long, "/map?x=" + long, "/proxy?x=" + long, "/fastcgi?x=" + long, "/" + long} {
		got := s.get(path)
		equal(t, path, fmt.Sprint(got.StatusCode, got.body), "500page")
	}
	equal(t, "a referer", s.get("/referer", "Referer: http://"+long).StatusCode, 500)
	equal(t, "a host", s.get("/if", "Host: "+strings.Repeat("a", 60)+".b").StatusCode, 500)
	if asked {
		t.Error("the upstream has been sent a request")
	}
	if got := strings.Count(s.errors.String(), "[alert]"); got != 7 || !strings.Contains(s.errors.String(), "pcre2_match() failed: -47 on \"") {
		t.Errorf("%d lines in %s", got, s.errors.String())
	}
	equal(t, "afterwards", s.get("/proxy?x=aaa").StatusCode, 200)
}

// A variable of a map whose match took too long makes the request fail wherever it is used first, and with each use behind that: an
// error page does not have it either.
func TestVariablesFailClosed(t *testing.T) {
	asked := false
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer target.Close()
	s := serve(t, map[string]string{"e.html": "page", "all/f.html": "file", "all/index.html": "index", "nginx.conf": `events {} http {
		map $arg_x $name { default all; ~^(?!x)(a+)+$ none; }
		map $name $other { default $name; }
		server {
			error_page 500 /e.html; root .;
			location = /e.html { }
			location = /return { return 200 $name; }
			location = /through { return 200 $other; }
			location = /redirect { return 302 /$name; }
			location = /set { error_page 500 @set; set $kept "x$name"; return 204; }
			location @set { return 200 "kept: $kept"; }
			location = /again { error_page 500 @again; return 200 $other; }
			location @again { proxy_set_header X-Name $other; proxy_pass ` + target.URL + `; }
			location = /page { error_page 404 /$name/f.html; return 404; }
			location /f.html { root $name; }
			location = /try { try_files /$name/f.html =404; }
			location = /none { try_files /$name/none =404; }
			location = /out { error_page 404 http://other/$name; return 404; }
			location = /last { try_files /missing /$name/f.html; }
			location = /index/ { alias all/; index $name.html; autoindex on; }
			location = /links { alias all/f.html; disable_symlinks on from=$name; }
			location = /put { root $name; dav_methods PUT; }
		} }`})
	long := "?x=" + strings.Repeat("a", 60) + "!"
	for path, want := range map[string]string{
		"/return": "500page", "/through": "500page", "/redirect": "500page", "/set": "500kept: ", "/again": "500", "/page": "500", "/f.html": "500page",
		"/try": "500page", "/none": "500page", "/out": "500", "/last": "500page", "/index/": "500page", "/links": "500page",
	} {
		got := s.get(path + long)
		page, _, builtin := strings.Cut(got.body, "<html>")
		if equal(t, path, fmt.Sprint(got.StatusCode, page), want); builtin != (len(want) == 3) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	equal(t, "PUT", s.request("PUT", "/put"+long).StatusCode, 500)
	if _, err := os.Stat(filepath.Join(s.dir, "all/put")); err == nil || asked {
		t.Errorf("stored: %v; the upstream has been sent a request: %v", err == nil, asked)
	}
	equal(t, "a map that is used in time", s.get("/return?x=aaa").body, "none")
}

// A response whose header or content depends on a match that was given up is a 500 in its place.
func TestResponsesFailClosed(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://old/"+strings.Repeat("a", 60)+"!")
		w.Header().Set("Set-Cookie", strings.Repeat("a", 60)+"!=b")
		_, _ = w.Write([]byte("proxied"))
	}))
	defer target.Close()
	s := serve(t, map[string]string{"d.html": "served", "nginx.conf": `events {} http {
		map $arg_x $name { default served; ~^(?!x)(a+)+$ other; }
		server {
			root .; types { text/html html; }
			location = /header { add_header X-Name $name; alias d.html; }
			location = /proxied { add_header X-Name $name; proxy_pass ` + target.URL + `; }
			location = /always { add_header X-Name $name always; return 404; }
			location = /expires { expires $name; alias d.html; }
			location = /from { sub_filter_types *; sub_filter $name x; alias d.html; }
			location = /to { sub_filter_types *; sub_filter e $name; alias d.html; }
			location = /flags { proxy_cookie_flags ~^(?!x)(a+)+$ secure; proxy_pass ` + target.URL + `; }
			location = /redirect { proxy_redirect ~^http://old/(?!x)(a+)+$ /; proxy_pass ` + target.URL + `; }
			location = /trailer { add_trailer X-Name $name; alias d.html; }
		} }`})
	for _, path := range []string{"/header", "/proxied", "/always", "/expires", "/from", "/to", "/flags", "/redirect"} {
		got := s.get(path + "?x=" + strings.Repeat("a", 60) + "!")
		equal(t, path, fmt.Sprint(got.StatusCode, got.body, got.Header["X-Name"], got.Header["Set-Cookie"]), "500[] []")
		equal(t, path+" as HEAD", s.request("HEAD", path+"?x="+strings.Repeat("a", 60)+"!").StatusCode, 500)
	}
	equal(t, "a map in time", s.get("/header?x=a").Header.Get("X-Name"), "other")
	got := s.get("/trailer?x=" + strings.Repeat("a", 60) + "!")
	equal(t, "a trailer", fmt.Sprint(got.StatusCode, got.body, got.Trailer), "200served"+fmt.Sprint(http.Header{}))
}
