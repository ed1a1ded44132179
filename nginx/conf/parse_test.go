package conf_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// implemented lists the directives of the tests: all that the engine implements.
var implemented = engine.Directives()

// parse writes files and parses nginx.conf of them. The returned text has DIR instead of the
// directory.
func parse(t *testing.T, globals string, files map[string]string) (*conf.Tree, string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := conf.Parse(conf.Options{File: filepath.Join(dir, "nginx.conf"), Globals: globals, Implemented: implemented})
	if err == nil {
		return tree, ""
	}
	var e *conf.Error
	if !errors.As(err, &e) {
		t.Errorf("%v is not a *conf.Error", err)
	}
	return nil, strings.ReplaceAll(err.Error(), dir, "DIR")
}

func TestErrors(t *testing.T) {
	tests := []struct {
		about, text, want string
	}{
		{"unknown directive", "events {}\nfoo bar;", `unknown directive "foo" in DIR/nginx.conf:2`},
		{"too few arguments", "http {\n server {\n  root;\n }\n}", `invalid number of arguments in "root" directive in DIR/nginx.conf:3`},
		{"too many arguments", "pid a b;", `invalid number of arguments in "pid" directive in DIR/nginx.conf:1`},
		{"wrong context", "\nproxy_pass http://a;", `"proxy_pass" directive is not allowed here in DIR/nginx.conf:2`},
		{"location in http", "http { location / {} }", `"location" directive is not allowed here in DIR/nginx.conf:1`},
		{"missing block", "http;", `directive "http" has no opening "{" in DIR/nginx.conf:1`},
		{"block that is none", "pid a {}", `directive "pid" is not terminated by ";" in DIR/nginx.conf:1`},
		{"flag", "daemon maybe;", `invalid value "maybe" in "daemon" directive, it must be "on" or "off" in DIR/nginx.conf:1`},
		{"duplicate", "pid a;\npid b;", `"pid" directive is duplicate in DIR/nginx.conf:2`},
		{"missing brace", "events {\n", `unexpected end of file, expecting "}" in DIR/nginx.conf:2`},
		{"one brace more", "events {}\n}", `unexpected "}" in DIR/nginx.conf:2`},
		{"missing semicolon", "events {}\npid a", `unexpected end of file, expecting ";" or "}" in DIR/nginx.conf:2`},
		{"open quote", "events {}\npid \"a;", `unexpected end of file, expecting ";" or "}" in DIR/nginx.conf:2`},
		{"missing include", "events {}\ninclude none.conf;", `open() "DIR/none.conf" failed (2: No such file or directory) in DIR/nginx.conf:2`},
		{"include of a directory", "include .;", `pread() "DIR" failed (21: Is a directory) in DIR/nginx.conf:1`},
		{"include of itself", "include nginx.conf;", `cycle of includes: "DIR/nginx.conf" includes itself in DIR/nginx.conf:1`},
		{"cycle of two", "include a.conf;", `cycle of includes: "DIR/a.conf" includes itself in DIR/b.conf:2`},
		{"error in an include", "http { include bad.conf; }", `unknown directive "nope" in DIR/bad.conf:3`},
		{"context in an include", "http { server { include ctx.conf; } }", `"upstream" directive is not allowed here in DIR/ctx.conf:1`},
		{"brace in an include", "http { include brace.conf; }", `unexpected "}" in DIR/brace.conf:1`},
		{"first error first", "include bad.conf;\nfoo;", `unknown directive "nope" in DIR/bad.conf:3`},
		{"first error first, other way", "foo;\ninclude bad.conf;", `unknown directive "foo" in DIR/nginx.conf:1`},
		{"refused", "http { server { location / { image_filter off; } } }", `directive "image_filter" is not supported by culvert yet (pictures are not changed) in DIR/nginx.conf:1`},
		{"refused block", "mail {\n}", `directive "mail" is not supported by culvert yet (mail is not proxied) in DIR/nginx.conf:1`},
		{"buffers of sockets", "stream { proxy_socket_rcvbuf 1k 2k; }", `invalid number of arguments in "proxy_socket_rcvbuf" directive in DIR/nginx.conf:1`},
		{"not inside stream", "stream { server { root html; } }", `"root" directive is not allowed here in DIR/nginx.conf:1`},
		{"twice inside stream", "stream { server { return a; return b; } }", `"return" directive is duplicate in DIR/nginx.conf:1`},
		{"refused inside stream", "stream { geoip_country x; }", `directive "geoip_country" is not supported by culvert yet (the databases of GeoIP are discontinued) in DIR/nginx.conf:1`},
		{"refused value", "http { proxy_ignore_client_abort on; }", `directive "proxy_ignore_client_abort" is not supported by culvert yet (only off) in DIR/nginx.conf:1`},
		{"map line", "http { map $a $b { x; } }", `invalid number of the map parameters in DIR/nginx.conf:1`},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, got := parse(t, "", map[string]string{
				"nginx.conf": tt.text,
				"a.conf":     "include b.conf;",
				"b.conf":     "\ninclude a.conf;",
				"bad.conf":   "#\n#\nnope;",
				"ctx.conf":   "upstream a {}",
				"brace.conf": "}",
			})
			if got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestMissingConfiguration(t *testing.T) {
	_, got := parse(t, "", nil)
	if want := `open() "DIR/nginx.conf" failed (2: No such file or directory)`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestGlobals(t *testing.T) {
	tree, fault := parse(t, "daemon off;", map[string]string{"nginx.conf": "events {}"})
	if fault != "" || tree.Main[0].Name != "daemon" || tree.Main[1].Name != "events" {
		t.Fatal(fault, tree)
	}
	for globals, want := range map[string]string{
		"foo;":        `unknown directive "foo" in command line`,
		"daemon off":  `unexpected end of file, expecting ";" or "}" in command line`,
		"daemon a b;": `invalid number of arguments in "daemon" directive in command line`,
	} {
		if _, got := parse(t, globals, map[string]string{"nginx.conf": "events {}"}); got != want {
			t.Errorf("%s: got %s, want %s", globals, got, want)
		}
	}
}

// print writes directives in a short form.
func print(list []*conf.Directive) string {
	var words []string
	for _, d := range list {
		word := strings.Join(append([]string{d.Name}, d.Args...), "|")
		if d.Block != nil {
			word += "{" + print(d.Block) + "}"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// Files may be included more than once, in any context, also in the body of a map, and every
// directive keeps its place.
func TestIncludes(t *testing.T) {
	tree, fault := parse(t, "", map[string]string{
		"nginx.conf": "events {} http { root a; include sub/*.conf; include none*.conf;" +
			"map $uri $x { include keys; z Z; } server { include loc; location /x { include loc; } } }",
		"sub/2.conf": "index b;",
		"sub/1.conf": "index a;",
		"keys":       "'' E; include more;",
		"more":       "~^a b;",
		"loc":        "location /x/y { }",
	})
	if fault != "" {
		t.Fatal(fault)
	}
	want := "events{} http{root|a index|a index|b map|$uri|$x{|E ~^a|b z|Z} server{location|/x/y{} location|/x{location|/x/y{}}}}"
	if got := print(tree.Main); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if last := tree.Main[1].Block[1]; !strings.HasSuffix(last.File, "sub/1.conf") || last.Line != 1 {
		t.Errorf("%+v", last)
	}
	if len(tree.Files) != 6 {
		t.Errorf("%d files, want each once", len(tree.Files))
	}
}

func TestEscapes(t *testing.T) {
	tree, fault := parse(t, "", map[string]string{
		"nginx.conf": `events {} http { log_format a "x\ty\n\"\\ \. \$" 'q\'\r' plain\;b ~*\.(js|css)$; }`,
	})
	if fault != "" {
		t.Fatal(fault)
	}
	got := tree.Main[1].Block[0].Args
	want := []string{"a", "x\ty\n\"\\ \\. \\$", "q'\r", `plain\;b`, `~*\.(js|css)$`}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestNotes(t *testing.T) {
	tree, fault := parse(t, "", map[string]string{
		"nginx.conf": "worker_processes 4;\nevents {}\nhttp {\n proxy_cache off;\n types { a b; }\n}",
	})
	if fault != "" {
		t.Fatal(fault)
	}
	var got []string
	for _, n := range tree.Notes {
		if (n.Reason == "") != (n.Class == conf.Implemented) {
			t.Errorf("%+v: only a directive that is not implemented has a reason", n)
		}
		got = append(got, n.Directive+" "+n.Class.String())
	}
	want := []string{"worker_processes no-op", "events implemented", "http implemented", "proxy_cache no-op", "types implemented"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if tree.Notes[3].Line != 4 {
		t.Errorf("%+v", tree.Notes[3])
	}
}

func TestReadFile(t *testing.T) {
	files := map[string]string{"/etc/n.conf": "events {} include x.conf;", "/etc/x.conf": "pid p;"}
	tree, err := conf.Parse(conf.Options{File: "/etc/n.conf", Implemented: implemented, ReadFile: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}})
	if err != nil || print(tree.Main) != "events{} pid|p" {
		t.Error(err, tree)
	}
}
