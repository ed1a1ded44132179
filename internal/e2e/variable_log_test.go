package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const variableLogConf = `http { log_format own '$request_uri $status'; open_log_file_cache max=10 inactive=20s valid=1m; error_log errors.log error;
  map $arg_log $logged { default 1; no 0; }
  server { listen {{LISTEN}}; root html;
    access_log logs/$host.log own if=$logged;
    location / { return 200 x; }
    location /files/ { alias html/; }
    location /here { access_log $arg_a.log own; access_log logs/$arg_b own if=$arg_b; return 200 x; }
    location /chosen { access_log logs/in/app-$arg_a.log own; return 200 x; }
    location /root { root html/$arg_r; return 200 x; }
    location /page { root html/$arg_r; error_page 404 /files/page.html; }
    location = /file { alias html/page.html; }
    location = /return { alias html/page.html; return 200 x; }
    location = /lost { root none; error_page 404 /file; }
  } }
`

var variableLogFiles = map[string]string{"html/page.html": "page", "html/sub/page.html": "sub", "logs/in/sub/x": "", "logs/in/app-/x": "", "logs/first.log": "before\n"}

// TestVariableLogsAsNginx: which files are made and what is in them. A name that leads out of its
// directory is not followed.
func TestVariableLogsAsNginx(t *testing.T) {
	const escape = "/chosen?a=/../../../out"
	outside := map[bool]bool{}
	ours := false
	sameOnBoth(t, startNginx, func(t *testing.T, start starter) (lines []string) {
		h := &holding{t: t, server: start(t, variableLogConf, variableLogFiles)}
		for _, target := range []string{"/1", "/2?log=no", "/here?a=x", "/here", "/here?a=/q", "/here?b=/q.log", "/here?a=z&b=in/sub/y.log", "/here?b=in", "/chosen?a=", "/chosen?a=1", "/chosen?a=sub/x", "/chosen?a=/../z",
			"/root", "/root?r=sub", "/root?r=none", "/root?r=page.html", "/page", "/page.html", "/page?r=none", "/page.html?r=sub", "/file", "/return", "/lost", "/files/page.html", "/files/missing", "/files/sub", escape, "/1"} {
			_, status := h.get(target)
			lines = append(lines, fmt.Sprint(target, " ", status))
		}
		h.end(t, syscall.SIGTERM) // nginx logs behind its response: the last line is sure to be there when it has ended
		_, err := os.Stat(filepath.Join(h.dir, "out.log"))
		outside[ours] = err == nil
		if err := os.Remove(filepath.Join(h.dir, "out.log")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		ours = true
		for _, line := range h.said("errors.log", "logging request") {
			if !strings.Contains(line, escape) {
				lines = append(lines, strings.ReplaceAll(line, h.dir, "DIR"))
			}
		}
		return append(lines, logsIn(t, h.dir)...)
	})
	if outside[true] {
		t.Error("culvert has followed a log's name out of its folder")
	}
	fact(t, "nginx follows a log's name out of its folder", outside[false], true)
}

// logsIn are the logs below a folder, each with its lines.
func logsIn(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".log") || strings.HasPrefix(entry.Name(), "error") {
			return err
		}
		content, err := os.ReadFile(name)
		lines = append(lines, strings.TrimPrefix(name, dir)+": "+string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}
