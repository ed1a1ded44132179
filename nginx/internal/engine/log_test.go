package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestAccessLog(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		log_format own escape=json '{"uri":"$uri","agent":"$http_user_agent"}';
		log_format two "$status" " " "$body_bytes_sent";
		map $status $failed { ~^[23] 0; default 1; }
		access_log main.log;
		server {
			location / { return 200 hello; }
			location /own { access_log own.log own buffer=32k flush=5s; access_log two.log two; return 200 x; }
			location /off { access_log off; return 200 x; }
			location /if { access_log if.log two if=$failed; location /if/404 { return 404 "12"; } return 200 x; }
		}
	}`})
	s.get("/a?b", "User-Agent: te\"st", "Referer: r")
	s.get("/own", `User-Agent: q"`)
	s.get("/off")
	s.get("/if")
	s.get("/if/404")
	main := regexp.MustCompile(`^127\.0\.0\.1 - - \[[^]]+\] "GET /a\?b HTTP/1\.1" 200 5 "r" "te\\x22st"\n$`)
	if got := s.file("main.log"); !main.MatchString(got) {
		t.Errorf("main.log: %q", got)
	}
	equal(t, "own.log", s.file("own.log"), "{\"uri\":\"/own\",\"agent\":\"q\\\"\"}\n")
	equal(t, "two.log", s.file("two.log"), "200 1\n")
	equal(t, "if.log", s.file("if.log"), "404 2\n")
}

func TestReopen(t *testing.T) {
	s := serve(t, server("access_log a.log; error_log e.log; return 200 x;"))
	s.get("/1")
	for _, name := range []string{"a.log", "e.log"} {
		if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, name+".1")); err != nil {
			t.Fatal(err)
		}
	}
	s.get("/2")
	if err := s.engine.Reopen(); err != nil {
		t.Fatal(err)
	}
	s.get("/3")
	equal(t, "lines in the old file", strings.Count(s.file("a.log.1"), "\n"), 2)
	equal(t, "lines in the new file", strings.Count(s.file("a.log"), "\n"), 1)
	s.file("e.log")
}

func TestErrorLog(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `error_log main.log;
	events {}
	http { server { server_name first;
		location / { root html; }
		location /own { error_log own.log crit; root html; }
	} }`})
	s.get("/missing?x")
	s.get("/own")
	want := regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[error\] \d+#\d+: \*\d+ open\(\) "` + regexp.QuoteMeta(s.dir) +
		`/html/missing" failed \(2: No such file or directory\), client: 127\.0\.0\.1, server: first, ` +
		`request: "GET /missing\?x HTTP/1\.1", host: "localhost"\n$`)
	if got := s.file("main.log"); !want.MatchString(got) {
		t.Errorf("main.log: %q", got)
	}
	equal(t, "own.log, above its level", s.file("own.log"), "")
	equal(t, "Settings", s.engine.Settings().ErrorLog, filepath.Join(s.dir, "main.log"))
	s.engine.Logger().Error("from outside", "key", "value")
	if got := s.file("main.log"); !strings.HasSuffix(got, ": from outside, key: value\n") {
		t.Errorf("main.log: %q", got)
	}
}

func TestSettings(t *testing.T) {
	s, err := load(t, map[string]string{"nginx.conf": "daemon off; pid run/x.pid; worker_processes 2; events {}"})
	if err != nil {
		t.Fatal(err)
	}
	got := s.engine.Settings()
	equal(t, "pid", got.PIDFile, filepath.Join(s.dir, "run/x.pid"))
	equal(t, "error log", got.ErrorLog, "stderr")
	equal(t, "notes", len(got.Notes), 4)
	var dump strings.Builder
	s.engine.Dump(&dump)
	equal(t, "dump", dump.String(), "# configuration file "+filepath.Join(s.dir, "nginx.conf")+":\n"+
		"daemon off; pid run/x.pid; worker_processes 2; events {}\n")
}

func TestConflictingNameIsAWarning(t *testing.T) {
	s, err := load(t, map[string]string{"nginx.conf": "error_log stderr warn; events {} http { server { server_name a; } server { server_name a; } }"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.errors.String(); !strings.Contains(got, "[warn]") || !strings.Contains(got, `conflicting server name "a" on 0.0.0.0:80, ignored`) {
		t.Errorf("logged %q", got)
	}
}
