package engine_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// variableLogs is a site with logs whose names depend on the request.
func variableLogs(t *testing.T) *site {
	t.Helper()
	return serve(t, map[string]string{"nginx.conf": `events {} http {
		log_format own '$request_uri';
		server {
			error_log error.log;
			access_log logs/$host.log own;
			location / { return 200 x; }
			location /chosen { access_log logs/in/app-$arg_a.log own; access_log logs/$arg_b own if=$arg_b; return 200 x; }
			location /root { root html/$arg_r; return 200 x; }
			location = /file { alias html/file; }
			location = /return { alias html/file; return 200 x; }
		}
	}`, "html/file": "f", "html/sub/file": "", "logs/in/sub/file": "", "logs/in/app-/file": "", "logs/first.log": "before\n"})
}

// logs returns the log files with their names.
func (s *site) logs() string {
	s.t.Helper()
	var found []string
	for _, pattern := range []string{"*.log", "*/*.log", "*/*/*.log", "*/*/*/*.log"} {
		names, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range names {
			found = append(found, strings.TrimPrefix(name, s.dir+"/"))
		}
	}
	return strings.Join(found, " ")
}

func TestAccessLogWithVariables(t *testing.T) {
	s := variableLogs(t)
	s.get("/1", "Host: First:8080")
	s.get("/2", "Host: second")
	s.get("/3", "Host: first")
	equal(t, "first.log", s.file("logs/first.log"), "before\n/1\n/3\n")
	equal(t, "second.log", s.file("logs/second.log"), "/2\n")
	s.get("/chosen?a=x")
	equal(t, "of the location", s.file("logs/in/app-x.log"), "/chosen?a=x\n")
	s.get("/chosen?b=in/sub/y.log")
	equal(t, "a folder below", s.file("logs/in/sub/y.log"), "/chosen?b=in/sub/y.log\n")
	s.get("/chosen?a=none/y")
	equal(t, "errors", strings.Count(s.file("error.log"), "\n"), 1)
	want := `[crit] ` + "*" + `open() "` + s.dir + `/logs/in/app-none/y.log" failed (2: No such file or directory) while logging request, client: 127.0.0.1`
	if got := syslogTimes.ReplaceAllString(s.file("error.log"), "*"); !strings.Contains(got, strings.Replace(want, "] *", "] *: *", 1)) {
		t.Errorf("error log: %q", got)
	}
}

// A client that names an outside folder creates no file there.
func TestAccessLogDoesNotLeaveItsFolder(t *testing.T) {
	s := variableLogs(t)
	before := s.logs()
	for _, name := range []string{"/../../../out", "/../../out", "x/../../../out", "/../../in/../../out"} {
		s.get("/chosen?a=" + name)
		want := `access log "` + s.dir + `/logs/in/app-` + name + `.log" is outside of "` + s.dir + `/logs/in/" while logging request`
		if got := s.file("error.log"); !strings.Contains(got, "[crit] ") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"../out.log", "../logs/out.log", "/../out.log", "..", "in/../../out.log"} {
		s.get("/chosen?a=y&b=" + name)
	}
	equal(t, "logs", s.logs(), strings.Replace(before, "logs/first.log", "logs/first.log logs/in/app-y.log", 1))
	s.get("/chosen?a=/../z") // and back
	s.get("/chosen?b=/" + s.dir[1:] + "/out.log")
	equal(t, "what is inside", s.file("logs/in/z.log"), "/chosen?a=/../z\n")
}

// As in nginx, nothing is logged if the file or folder that is served is missing.
func TestAccessLogWithVariablesNeedsTheRoot(t *testing.T) {
	s := variableLogs(t)
	for _, path := range []string{"/root", "/root?r=sub", "/root?r=none", "/root?r=file", "/file", "/return"} {
		equal(t, path, s.get(path, "Host: first").StatusCode, 200)
	}
	equal(t, "logged", s.file("logs/first.log"), "before\n/root\n/root?r=sub\n/file\n")
	for _, want := range []string{`testing "` + s.dir + `/html/none" existence failed (2: No such file or directory) while logging request`,
		`testing "` + s.dir + `/html/file" existence failed (20: Not a directory) while logging request`} {
		if got := s.file("error.log"); !strings.Contains(got, want) {
			t.Errorf("error log: %q, wanted %q", got, want)
		}
	}
}
