package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/command"
)

// run runs the command line to its end, in this process.
func run(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = command.Run(args, &out, &err)
	return status, out.String(), err.String()
}

func TestVersionAndHelp(t *testing.T) {
	const version = "nginx version: nginx/1.31.5 (culvert/devel)\n" // TestInstall of internal/e2e prints a tagged one
	for _, test := range []struct {
		args, want []string
	}{
		{[]string{"-v"}, []string{version}},
		{[]string{"-V"}, []string{version, "built by go", "TLS SNI support enabled\n"}},
		{[]string{"-h"}, []string{version, "Usage: nginx [-?hvVtTq]", "-s signal"}},
		{[]string{"-?"}, []string{version, "Usage: nginx"}},
		{[]string{"-vh"}, []string{version, "Usage: nginx"}},
	} {
		status, stdout, stderr := run(test.args...)
		if status != 0 || stdout != "" {
			t.Errorf("%v: status %d, standard output %q", test.args, status, stdout)
		}
		for _, want := range test.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v: printed %q, without %q", test.args, stderr, want)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-x"}, `nginx: invalid option: "x"`},
		{[]string{"--all"}, `nginx: option "--all" requires "-t" or "-T"`},
		{[]string{"-tx"}, `nginx: invalid option: "x"`},
		{[]string{"start"}, `nginx: invalid option: "start"`},
		{[]string{""}, `nginx: invalid option: ""`},
		{[]string{"-c"}, `nginx: option "-c" requires file name`},
		{[]string{"-tc", ""}, `nginx: option "-c" requires file name`},
		{[]string{"-e"}, `nginx: option "-e" requires file name`},
		{[]string{"-p"}, `nginx: option "-p" requires directory name`},
		{[]string{"-g"}, `nginx: option "-g" requires parameter`},
		{[]string{"-s"}, `nginx: option "-s" requires parameter`},
		{[]string{"-s", "restart"}, `nginx: invalid option: "-s restart"`},
	} {
		status, stdout, stderr := run(test.args...)
		if status != 1 || stdout != "" || stderr != test.want+"\n" {
			t.Errorf("%q: status %d, printed %q, want %q", test.args, status, stderr, test.want)
		}
	}
}

// write creates a folder with the files.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTestConfiguration(t *testing.T) {
	const good = "events {}\nhttp { server { listen 127.0.0.1:1; return 200 ok; } }\n"
	dir := write(t, map[string]string{
		"conf/nginx.conf": good,
		"bad.conf":        "events {}\nhttp {\n  server { listen 127.0.0.1:1;\n    frobnicate on; }\n}\n",
		"refused.conf":    "events {}\nhttp { sendfile on; perl_modules x;\nserver { return 200; proxy_no_cache 1; xml_entities a; if ($host) { return 200; } } }\n",
		"split.conf":      "events {}\nhttp { include part.conf; }\n",
		"part.conf":       "server { listen 127.0.0.1:1; }\n",
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	success := func(name string) string {
		return "nginx: [notice] implemented: events, http, listen, return, server\nnginx: the configuration file " + file(name) + " syntax is ok\nnginx: configuration file " + file(name) + " test is successful\n"
	}
	for _, test := range []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string
	}{
		{"-t", []string{"-t", "-c", file("conf/nginx.conf")}, 0, "", success("conf/nginx.conf")},
		{"values that stick to their flags", []string{"-tc" + file("conf/nginx.conf")}, 0, "", success("conf/nginx.conf")},
		{"-p has conf/nginx.conf", []string{"-t", "-p", dir}, 0, "", success("conf/nginx.conf")},
		{"a file relative to -p", []string{"-t", "-p", dir + "/", "-c", "split.conf"}, 0, "", strings.Replace(success("split.conf"), "listen, return,", "include, listen,", 1)},
		{"-q", []string{"-tq", "-p", dir}, 0, "", ""},
		{"-T", []string{"-T", "-q", "-p", dir, "-c", "split.conf"}, 0,
			"# configuration file " + file("split.conf") + ":\nevents {}\nhttp { include part.conf; }\n\n" +
				"# configuration file " + file("part.conf") + ":\nserver { listen 127.0.0.1:1; }\n\n", ""},
		{"refused", []string{"-t", "-p", dir, "-c", "refused.conf"}, 1, "",
			"nginx: [notice] \"sendfile\" is a no-op: the kernel's fast path is used where there is one in " + file("refused.conf") + ":2\n" +
				"nginx: [error] \"perl_modules\" is refused: there is no Perl in " + file("refused.conf") + ":2\n" +
				"nginx: [warn] \"proxy_no_cache\" is not followed: nothing is cached: a miss is always legal in " + file("refused.conf") + ":3\n" +
				"nginx: [error] \"xml_entities\" is refused: XML is not transformed in " + file("refused.conf") + ":3\n" +
				"nginx: [notice] implemented: events, http, if, return (2), server\n" +
				"nginx: [emerg] directive \"perl_modules\" is not supported by culvert yet (there is no Perl) in " + file("refused.conf") + ":2\nnginx: configuration file " + file("refused.conf") + " test failed\n"},
		{"a bad one", []string{"-t", "-c", file("bad.conf")}, 1, "",
			"nginx: [notice] implemented: events, http, listen, server\nnginx: [emerg] unknown directive \"frobnicate\" in " + file("bad.conf") + ":4\nnginx: configuration file " + file("bad.conf") + " test failed\n"},
		{"a missing one", []string{"-t", "-c", file("none.conf")}, 1, "",
			"nginx: [emerg] open() \"" + file("none.conf") + "\" failed (2: No such file or directory)\nnginx: configuration file " + file("none.conf") + " test failed\n"},
		{"bad globals", []string{"-t", "-p", dir, "-g", "frobnicate on;"}, 1, "",
			"nginx: [emerg] unknown directive \"frobnicate\" in command line\nnginx: configuration file " + file("conf/nginx.conf") + " test failed\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := run(test.args...)
			if status != test.status || stdout != test.stdout || stderr != test.stderr {
				t.Errorf("status %d\n%s\n%s\nwant %d\n%s\n%s", status, stdout, stderr, test.status, test.stdout, test.stderr)
			}
		})
	}
}

// A directive that has no effect here is reported, with the reason.
func TestNotes(t *testing.T) {
	dir := write(t, map[string]string{"nginx.conf": "worker_processes 4;\nevents {}\nhttp { server { listen 127.0.0.1:1; } }\n"})
	_, _, stderr := run("-t", "-p", dir, "-c", "nginx.conf")
	if want := "nginx: [notice] \"worker_processes\" is a "; !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, filepath.Join(dir, "nginx.conf")+":1\n") {
		t.Errorf("printed %q, want %q", stderr, want)
	}
}

// The file of -e exists before the configuration is read.
func TestErrorLogOption(t *testing.T) {
	dir := write(t, map[string]string{"nginx.conf": "events {}\nhttp { server { listen 127.0.0.1:1; } }\n"})
	if status, _, stderr := run("-t", "-p", dir, "-c", "nginx.conf", "-e", "err.log"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "err.log")); err != nil {
		t.Error(err)
	}
	_, _, stderr := run("-t", "-p", dir, "-c", "nginx.conf", "-e", "none/err.log")
	want := "nginx: [alert] could not open error log file: open() \"" + filepath.Join(dir, "none/err.log") + "\" failed (2: No such file or directory)\n"
	if !strings.HasPrefix(stderr, want) {
		t.Errorf("printed %q, want %q", stderr, want)
	}
}

// -t prints the first error, as nginx does, and with --all each of them.
func TestAllErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nginx.conf")
	if err := os.WriteFile(file, []byte("error_log stderr;\nevents {}\nhttp {\n gzip maybe;\n perl x;\n foo;\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want int
	}{{[]string{"-t"}, 1}, {[]string{"-t", "--all"}, 3}, {[]string{"--all", "-tq"}, 3}} {
		status, _, stderr := run(append(test.args, "-c", file)...)
		if got := strings.Count(stderr, "nginx: [emerg] "); status != 1 || got != test.want {
			t.Errorf("%v: status %d and %d errors, want %d:\n%s", test.args, status, got, test.want, stderr)
		}
	}
}
