package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// programsConf is what people have around PHP and Python: a front controller behind try_files, files of scripts with a path behind
// them, and an application by uwsgi.
const programsConf = `http { access_log off; server { listen {{LISTEN}}; root {{DIR}}/html; index index.php;
  location / { try_files $uri $uri/ /index.php?$args; }
  location ~ [^/]\.php(/|$) {
    fastcgi_split_path_info ^(.+?\.php)(/.*)$;
    fastcgi_index index.php;
    include {{DIR}}/params;
    fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
    fastcgi_param SCRIPT_NAME $fastcgi_script_name;
    fastcgi_param PATH_INFO $fastcgi_path_info;
    fastcgi_param HTTPS $https if_not_empty;
    fastcgi_keep_conn on;
    fastcgi_intercept_errors on;
    fastcgi_pass unix:{{DIR}}/php.sock;
  }
  error_page 418 /teapot; location = /teapot { internal; return 418 teapot; }
  location /internal/ { internal; alias {{DIR}}/html/; }
  location /py/ { uwsgi_pass unix:{{DIR}}/py.sock; uwsgi_param PATH_INFO $uri; uwsgi_param QUERY_STRING $args; uwsgi_param REQUEST_METHOD $request_method;
    uwsgi_param SCRIPT_NAME ""; uwsgi_param SERVER_NAME app; uwsgi_param SERVER_PORT 80; uwsgi_param SERVER_PROTOCOL $server_protocol;
    uwsgi_param CONTENT_LENGTH $content_length; uwsgi_param CONTENT_TYPE $content_type; }
} }
`

var programsFiles = map[string]string{
	"params": `fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param REQUEST_URI $request_uri; fastcgi_param DOCUMENT_URI $document_uri;
fastcgi_param SERVER_PROTOCOL $server_protocol; fastcgi_param GATEWAY_INTERFACE CGI/1.1; fastcgi_param REMOTE_ADDR $remote_addr; fastcgi_param REDIRECT_STATUS 200;`,
	"html/plain.txt": "a file\n",
	"html/index.php": `<?php
switch ($_GET["do"] ?? "") {
case "redirect": header("Location: /elsewhere"); exit;
case "status": http_response_code(503); header("Retry-After: 7"); break;
case "intercept": http_response_code(418); echo "from PHP"; exit;
case "accel": header("X-Accel-Redirect: /internal/plain.txt"); exit;
case "cookies": setcookie("a", "1"); setcookie("b", "2"); break;
case "none": http_response_code(204); exit;
case "error": error_log("it broke"); echo "behind an error"; exit;
case "large": echo str_repeat("0123456789", 100000); exit;
}
header("Content-Type: text/plain; charset=utf-8");
foreach (["REQUEST_METHOD", "REQUEST_URI", "QUERY_STRING", "SCRIPT_NAME", "PATH_INFO", "CONTENT_LENGTH", "CONTENT_TYPE", "HTTP_HOST", "HTTP_X_A", "HTTP_COOKIE", "HTTPS"] as $k)
  echo $k, "=", $_SERVER[$k] ?? "-", "\n";
$body = file_get_contents("php://input");
echo strlen($body), " ", md5($body), "\n";
`,
	"app.py": `
def application(env, start_response):
    body = env["wsgi.input"].read()
    if env["QUERY_STRING"] == "teapot":
        start_response("418 Teapot", [("Content-Type", "text/plain"), ("X-A", "1"), ("X-A", "2")])
        return [b"short ", b"and stout"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    text = "%s %s %s %s %s %d" % (env["REQUEST_METHOD"], env["PATH_INFO"], env.get("HTTP_HOST"), env.get("HTTP_X_A"), env.get("CONTENT_LENGTH"), len(body))
    return [text.encode()]
`,
}

// startPrograms starts php-fpm and uwsgi on sockets in dir.
func startPrograms(t *testing.T, dir string) {
	writeFiles(t, dir, map[string]string{"fpm.conf": fmt.Sprintf(`[global]
error_log = %[1]s/fpm.log
daemonize = no
[www]
listen = %[1]s/php.sock
pm = static
pm.max_children = 2
catch_workers_output = no
`, dir)})
	php, err := filepath.Glob("/usr/sbin/php-fpm*")
	if err != nil || len(php) == 0 {
		t.Fatalf("php-fpm is needed (apt-get install php-fpm): %v", err)
	}
	start(t, filepath.Join(dir, "php.sock"), php[0], "-R", "-F", "-n", "-y", filepath.Join(dir, "fpm.conf"))
	start(t, filepath.Join(dir, "py.sock"), "uwsgi", "--socket", filepath.Join(dir, "py.sock"), "--plugin", "python3", "--wsgi-file", filepath.Join(dir, "app.py"),
		"--need-app", "--die-on-term", "--disable-logging")
}

// start starts a program, and waits until it accepts connections to socket. It ends with the test.
func start(t *testing.T, socket, program string, args ...string) {
	cmd := exec.Command(program, args...)
	output := &wiretest.Log{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s is needed (apt-get install php-fpm uwsgi-core uwsgi-plugin-python3): %v", program, err)
	}
	t.Cleanup(func() {
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		terminate(cmd.Process, ended)
		if t.Failed() {
			t.Logf("%s: %s", program, output)
		}
	})
	waitFor(t, program, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// terminate signals a process to end until it has: a program that still starts may lose the signal, as uwsgi does.
func terminate(p *os.Process, ended <-chan error) {
	for {
		_ = p.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(time.Second):
		}
	}
}

var programsSteps = append(gets("/", "/a/b?c=d", "/index.php/path/info?x=%20y", "/index.php", "/plain.txt", "/missing.php", "/?do=redirect", "/?do=status", "/?do=intercept",
	"/?do=accel", "/?do=cookies", "/?do=none", "/?do=error", "/?do=large", "/py/x%2Fy?q", "/py/?teapot"),
	step{name: "POST to PHP", raw: "POST /save HTTP/1.1\r\nHost: h\r\nX-A: b\r\nCookie: k=v\r\nContent-Type: x/y\r\nContent-Length: 5\r\n\r\nhello"},
	step{name: "a large POST to PHP", raw: "POST /save HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200000)},
	step{name: "chunked to PHP", raw: "POST /save HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
	step{name: "HEAD to PHP", raw: "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", methods: []string{"HEAD"}},
	step{name: "POST to Python", raw: "POST /py/a HTTP/1.1\r\nHost: h\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello"},
	step{name: "chunked to Python", raw: "POST /py/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
	step{name: "HEAD to Python", raw: "HEAD /py/a HTTP/1.1\r\nHost: h\r\n\r\n", methods: []string{"HEAD"}},
	step{name: "two to PHP", raw: "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", methods: []string{"GET", "GET"}},
)
