package nginx_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/conf"
)

// faulty has one fault in each line that ends in a comment, which is the error's text.
const faulty = `error_log stderr;
events { worker_connections 10; foo; } # unknown directive "foo"
http {
    map $uri $kind { default 1; }
    image_filter off; # "image_filter" directive is not allowed here
    server_tokens maybe; # invalid value "maybe"
    upstream faulty { server 127.0.0.1:99999; } # invalid port in upstream "127.0.0.1:99999"
    upstream empty { } # no servers are inside upstream
    upstream good { server 127.0.0.1:1; }
    log_format main '$remote_addr $nosuch'; # unknown "nosuch" variable
    server { # no "ssl_certificate" is defined for the "listen ... ssl" directive
        listen 80 bogus; # invalid parameter "bogus"
        location ~ (a { return 200; } # pcre2_compile() failed: missing closing parenthesis in "(a"
        location / {
            proxy_pass http://good;
            proxy_read_timeout 10q; # "proxy_read_timeout" directive invalid value
            perl x; # directive "perl" is not supported by culvert yet (there is no Perl)
            if ($kind ~ "(") { return 200; } # pcre2_compile() failed: missing closing parenthesis in "("
        }
        location /twice {
            root /tmp;
            root /x; # "root" directive is duplicate
            rewrite; # invalid number of arguments in "rewrite" directive
        }
        location bad /x { return 200; } # invalid location modifier "bad"
        listen 443 ssl;
    }
    include nosuch.conf; # open() "DIR/nosuch.conf" failed (2: No such file or directory)
    server {
        listen 81;
        limit_req zone=none; # zero size shared memory zone "none"
    }
}
stream_x { } # unknown directive "stream_x"
`

// write writes a configuration into a folder of the test's, which DIR stands for.
func write(t *testing.T, text string) nginx.Options {
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return nginx.Options{File: file, Prefix: dir}
}

// One reading finds every fault, each at its line, in the order of the lines.
func TestCheck(t *testing.T) {
	o := write(t, faulty)
	var want []string
	for i, line := range strings.Split(faulty, "\n") {
		if _, text, ok := strings.Cut(line, " # "); ok {
			want = append(want, fmt.Sprintf("%s in %s:%d", strings.ReplaceAll(text, "DIR", o.Prefix), o.File, i+1))
		}
	}
	var got []string
	for _, err := range nginx.Check(o) {
		if at := (*conf.Error)(nil); !errors.As(err, &at) {
			t.Errorf("%v has no place", err)
		}
		got = append(got, err.Error())
	}
	got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "was specified earlier") }) // the duplicate root's second
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Certificates and addresses of servers are checked when all is compiled: each of their errors is found, too.
func TestCheckServers(t *testing.T) {
	o := write(t, `error_log stderr; events {}
http {
    server { listen 443 ssl; ssl_certificate a.crt; ssl_certificate_key a.key; }
    server { listen 443 ssl; ssl_certificate b.crt; ssl_certificate_key b.key; }
    server { listen 443 ssl default_server; }
    server { listen 443 ssl default_server; ssl_certificate d.crt; ssl_certificate_key d.key; }
    server { listen 444 ssl; ssl_certificate data:none; ssl_certificate_key data:none; ssl_session_ticket_key e; }
}
stream {
    server { listen 445 ssl; return a; }
    server { listen 446 ssl; ssl_certificate g.crt; ssl_certificate_key g.key; return a; }
}`)
	var at []string
	for _, err := range nginx.Check(o) {
		_, line, _ := strings.Cut(err.Error(), o.File+":")
		at = append(at, line)
	}
	if got := strings.Join(at, " "); got != "3 4 5 6 6 7 10 11" {
		t.Errorf("errors in the lines %s: %v", got, nginx.Check(o))
	}
}

// A file without faults has none, and one that cannot be read is one.
func TestCheckWhole(t *testing.T) {
	if errs := nginx.Check(write(t, "error_log stderr; events {} http { server { listen 80; } }")); errs != nil {
		t.Errorf("got %v", errs)
	}
	if errs := nginx.Check(nginx.Options{File: "nosuch.conf", Prefix: t.TempDir()}); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
	if errs := nginx.Check(write(t, "events {} http { server { listen 80; }")); len(errs) != 1 || !strings.Contains(errs[0].Error(), "unexpected end of file") {
		t.Errorf("got %v", errs)
	}
}

// A directive that is at fault is left out, and what follows is compiled without it.
func TestCheckEachLineLeftOut(t *testing.T) {
	good, err := os.ReadFile("testdata/whole.conf")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(good), "\n")
	if errs := nginx.Check(write(t, string(good))); errs != nil {
		t.Fatalf("before: %v", errs)
	}
	for i, line := range lines {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasSuffix(line, ";") || strings.HasPrefix(words[0], "#") {
			continue
		}
		for _, value := range []string{"\"\\x01\"", "~(", "$nosuch", ""} {
			faulty := slices.Clone(lines)
			faulty[i] = words[0] + " " + value + ";"
			o := write(t, strings.Join(faulty, "\n"))
			s, err := nginx.New(o)
			if err == nil {
				s.Close()
			}
			if errs := nginx.Check(o); (err == nil) != (len(errs) == 0) {
				t.Errorf("%s: New returns %v, Check %v", faulty[i], err, errs)
			}
		}
	}
}
