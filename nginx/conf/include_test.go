package conf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
)

// A file may be included inside every block that may contain directives, and is checked like its
// text in that place.
func TestIncludeInsideBlocks(t *testing.T) {
	for name, test := range map[string]struct{ text, included, err string }{
		"if in a server":   {"http { server { if ($host) { include in; } } }", "return 204;", ""},
		"if in a location": {"http { server { location / { if ($host) { include in; } } } }", "add_header A b;\nreturn 204;", ""},
		"limit_except":     {"http { server { location / { limit_except GET { include in; } } } }", "deny all;", ""},
		"not in an if":     {"http { server { if ($host) { include in; } } }", "\nlisten 80;", `"listen" directive is not allowed here in DIR/in:2`},
		"not in limit_except": {"http { server { location / { limit_except GET { include in; } } } }", "root html;",
			`"root" directive is not allowed here in DIR/in:1`},
		"not in a server's if": {"http { server { if ($host) { include in; } } }", "add_header A b;", `"add_header" directive is not allowed here in DIR/in:1`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"nginx.conf": "events {} " + test.text, "in": test.included} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := conf.Parse(conf.Options{File: filepath.Join(dir, "nginx.conf"), Implemented: implemented})
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), dir, "DIR")
			}
			if got != test.err {
				t.Errorf("got %q, want %q", got, test.err)
			}
		})
	}
}

// What is not followed of an implemented directive is reported, too.
func TestNotFollowed(t *testing.T) {
	for text, passed := range map[string]bool{
		"http { server { listen 443 quic reuseport; } }":                false,
		"http { server { listen 443; } }":                               false,
		"http { server { error_page 497 /https; } }":                    false,
		"http { server { error_page 404 497 @https; } }":                false,
		"http { server { error_page 404 =497 /x; } }":                   false,
		"http { proxy_set_header TE trailers; }":                        true,
		"http { proxy_set_header keep-alive 5; }":                       true,
		"http { proxy_set_header Content-Length \"\"; }":                false,
		"http { proxy_set_header X-TE x; }":                             false,
		"http { proxy_http_version 1.0; }":                              true,
		"http { proxy_http_version 1.1; }":                              false,
		"http { access_log x combined gzip; }":                          true,
		"http { access_log x combined buffer=4k; }":                     false,
		"http { ssl_conf_command a b; }":                                true,
		"http { proxy_cache off; }":                                     false,
		"http { ssl_early_data on; }":                                   true,
		"http { tunnel_send_timeout 1s; }":                              true,
		"http { proxy_cache on; }":                                      true,
		"http { map a $b { proxy_http_version 1.0; error_page 497; } }": false,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(file, []byte("events {} "+text), 0o644); err != nil {
			t.Fatal(err)
		}
		tree, err := conf.Parse(conf.Options{File: file, Implemented: implemented})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := false
		for _, n := range tree.Notes {
			got = got || n.Class == conf.Passed && n.Reason != "" && n.File == file && n.Line == 1
		}
		if got != passed {
			t.Errorf("%s: not followed is %t, want %t", text, got, passed)
		}
	}
}
