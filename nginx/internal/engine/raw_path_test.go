package engine_test

import (
	"strings"
	"testing"
)

// The path is sent to an upstream as the client has sent it until a rewrite or an internal
// redirect changes it: a named location alone changes nothing (valid_unparsed_uri of
// ngx_http_proxy_create_request).
func TestRawPathOfProxyPass(t *testing.T) {
	up := echo(t)
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		proxy_bind $arg_from;
		server {
			rewrite ^/served/(.*)$ /base/$1 break;
			location / { try_files $uri @app; }
			location /missing/ { error_page 404 = @app; }
			location /own/ { try_files $uri @own; }
			location /own-break/ { try_files $uri @break; }
			location /moved/ { rewrite ^/moved/(.*)$ /other/$1 last; }
			location /inside/ { try_files $uri /other$uri; }
			location /inside-named/ { try_files $uri /named$uri; }
			location /named/ { try_files $uri @app; }
			location /other/ { proxy_pass http://UP; }
			location /args/ { set $args a=b; try_files $uri @app; }
			location /args-here/ { set $args a=b; proxy_pass http://UP; }
			location /base/ { proxy_pass http://UP/b/; }
			location @app { proxy_pass http://UP; }
			location @own { set $up UP; proxy_pass http://$up; }
			location @break { rewrite ^ /x%y break; proxy_pass http://UP; }
		}
	}`, "UP", up)})
	for target, want := range map[string]string{
		"/projects/group%2Fproject?a=%20": "/projects/group%2Fproject?a=%20",
		"//a/./b":                         "//a/./b",
		"/missing/a%2Fb//c":               "/missing/a%2Fb//c",
		"/own/%41%2f":                     "/own/%41%2f",
		"/own-break/a":                    "/x%25y",
		"/moved/a%2Fb":                    "/other/a/b",
		"/inside/a%2Fb//c":                "/other/inside/a/b/c",
		"/inside-named/a%2Fb":             "/named/inside-named/a/b",
		"/args/a%2Fb":                     "/args/a/b?a=b",
		"/args-here/<a>":                  "/args-here/<a>?a=b",
		"/base/a%2Fb":                     "/b/a/b",
		"/served/x":                       "/base/x",
	} {
		got := s.get(target)
		words := strings.SplitN(got.body, " ", 3)
		if len(words) < 2 {
			t.Errorf("%s: %d %q", target, got.StatusCode, got.body)
			continue
		}
		equal(t, target, words[1], want)
	}
}
