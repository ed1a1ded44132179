package engine_test

import (
	"strings"
	"testing"
)

// try_files looks for files behind an alias: what it stands for is taken away from texts with variables alone, and the alias of a
// regular expression stands for nothing of the path.
func TestTryFilesBehindAlias(t *testing.T) {
	s := serve(t, with(server(`
		location /vars/ { alias files/; try_files $uri $uri/ =404; }
		location /constant/ { alias files; try_files /found =404; }
		location ~ ^/pattern/ { alias files; try_files $uri =404; }
		location ~ ^/dir/ { alias files/pattern/; try_files / =404; index found; }
		location ~ ^/captured/(.*)$ { alias files/$1; }
		location /twice/ { alias files/; try_files $uri /pattern/found; }`),
		"files/found", "found", "files/pattern/found", "behind a pattern", "files/vars/found", "not this"))
	for target, want := range map[string]string{
		"/vars/found": "found", "/vars/none": "404", "/vars/../constant/x": "found", "/constant/x": "found", "/pattern/found": "behind a pattern",
		"/pattern/none": "404", "/captured/found": "found", "/twice/none": "behind a pattern",
	} {
		got := s.get(target)
		if got.StatusCode != 200 {
			got.body = "404"
		}
		equal(t, target, got.body, want)
	}
}

// log_not_found off keeps a missing file out of the error log, and nothing else.
func TestLogNotFound(t *testing.T) {
	s := serve(t, with(server(`root html; error_log on.log; location /off/ { error_log off.log; log_not_found off; }`), "html/off/dir/x", "x"))
	for _, target := range []string{"/none", "/off/none", "/off/none/", "/off/dir/"} {
		s.get(target)
	}
	equal(t, "on.log", len(s.file("on.log")) > 0, true)
	if got := s.file("off.log"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "is forbidden") {
		t.Errorf("off.log: %q, want a line about the directory", got)
	}
}
