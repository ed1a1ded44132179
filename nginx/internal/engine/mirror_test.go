package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
)

// A request is copied once though try_files leads it from one location with a mirror to another: as in nginx, try_files comes
// before mirror. A copy shows itself by the file that it does not find.
func TestMirrorBehindTryFiles(t *testing.T) {
	for path, copies := range map[string]int{"/f.txt": 1, "/fallback": 1, "/named": 1, "/none": 1, "/refused": 0, "/index/": 2} {
		synctest.Test(t, func(t *testing.T) {
			s, err := load(t, map[string]string{"html/f.txt": "f", "html/index/index.html": "i", "nginx.conf": `events {}
http { access_log off; server { listen 80; root html; mirror /copy;
  location = /copy { internal; root copies; mirror off; }
  location /fallback { try_files /none /f.txt; }
  location /named { try_files /none @named; }
  location /refused { try_files /none =410; }
  location @named { try_files /f.txt =404; } } }`})
			if err != nil {
				t.Fatal(err)
			}
			s.timedStatus(path)
			synctest.Wait()
			if n := strings.Count(s.errors.String(), "copies/copy"); n != copies {
				t.Errorf("%s: %d copies, want %d: %s", path, n, copies, s.errors.String())
			}
		})
	}
}
