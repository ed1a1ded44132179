package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const limitConnConf = `http { access_log off; default_type text/plain; error_log limits.log info;
limit_conn_zone $binary_remote_addr zone=addr:1m; limit_conn_zone $server_name zone=server:1m; limit_conn_zone $arg_key zone=key:1m;
limit_req_zone $arg_req zone=req:1m rate=1r/m; limit_req_zone $arg_req zone=second:1m rate=60r/m;
add_header X-Limit "$limit_conn_status $limit_req_status" always;
server { listen {{LISTEN}}; server_name a.example;
  location /addr/ { limit_conn addr 2; proxy_pass {{UP}}; }
  location /server/ { limit_conn server 2; proxy_pass {{UP}}; }
  location /both/ { limit_conn addr 2; limit_conn server 3; proxy_pass {{UP}}; }
  location /status/ { limit_conn addr 1; limit_conn_status 429; limit_conn_log_level warn; proxy_pass {{UP}}; }
  location /dry/ { limit_conn key 5; limit_conn addr 1; limit_conn_dry_run on; proxy_pass {{UP}}; }
  location /key/ { limit_conn key 1; proxy_pass {{UP}}; }
  location /several/ { limit_conn key 1; limit_conn addr 1; proxy_pass {{UP}}; }
  location /page/ { limit_conn addr 1; error_page 503 =200 @busy; proxy_pass {{UP}}; }
  location @busy { limit_conn key 1; proxy_pass {{UP}}; }
  location /internal/ { limit_conn key 1; try_files /none /addr/inner; }
  location /req/ { limit_req zone=req; proxy_pass {{UP}}; }
  location /req-dry/ { limit_req zone=req; limit_req_dry_run on; proxy_pass {{UP}}; }
  location /delayed/ { limit_req zone=req burst=1 nodelay; limit_req_log_level notice; proxy_pass {{UP}}; }
  location /wait/ { limit_req zone=second burst=2; proxy_pass {{UP}}; }
  location / { proxy_pass {{UP}}; } }
server { listen {{LISTEN}}; server_name b.example;
  location /both/ { limit_conn addr 2; limit_conn server 3; proxy_pass {{UP}}; }
  location /server/ { limit_conn server 2; proxy_pass {{UP}}; } } }
`

// limitConnSteps hold requests and send others meanwhile: "held" is held until the end of its
// line, and each line ends with nothing held.
var limitConnSteps = [][]string{
	{"1 a /addr/held", "1 a /addr/held", "1 a /addr/x", "2 a /addr/held", "1 b /free", "2 a /addr/x", "1 a /free"},
	{"1 a /addr/x", "1 a /addr/x", "1 a /addr/x"},
	{"1 a /server/held", "2 a /server/held", "3 a /server/x", "3 b /server/x", "1 b /server/held"},
	{"1 a /both/held", "1 a /both/held", "1 a /both/x", "2 a /both/held", "2 a /both/x", "3 b /both/x", "2 b /both/held", "2 b /both/x", "1 b /both/x"},
	{"1 a /both/held", "1 b /both/held", "1 a /both/x", "1 b /both/x", "2 a /both/x"},
	{"1 a /status/held", "1 a /status/x", "2 a /status/x"},
	{"1 a /dry/held?key=d", "1 a /dry/x?key=d", "1 a /dry/held?key=d", "2 a /key/x?key=d", "2 a /key/x?key=e"},
	{"1 a /addr/held", "1 a /dry/held?key=d", "1 a /key/x?key=d"}, // what is only counted dry counts nowhere
	{"1 a /key/held?key=a", "2 a /key/x?key=a", "2 a /key/x?key=b", "2 a /key/held?key=", "2 a /key/x", "3 a /key/x?key=a"},
	{"1 a /addr/held", "1 a /several/x?key=s", "1 a /several/x?key=s", "2 a /key/held?key=s", "2 a /several/x?key=s", "3 a /several/x?key=s", "3 a /several/held"},
	{"1 a /several/held?key=s", "1 a /key/x?key=s", "2 a /several/x?key=s", "2 a /several/held?key=t", "1 a /several/x?key=u", "1 a /key/x?key=u", "2 a /key/x?key=t"},
	{"1 a /addr/held", "1 a /page/x?key=p", "1 a /page/held?key=p", "2 a /key/x?key=p", "2 a /page/x"},
	{"1 a /key/held?key=i", "2 a /internal/x?key=i", "2 a /internal/x?key=j", "2 a /addr/held", "2 a /addr/held", "2 a /internal/x?key=j", "2 a /internal/x"},
	{"1 a /key/held?key=" + strings.Repeat("k", 255), "1 a /key/x?key=" + strings.Repeat("k", 255), "1 a /key/x?key=" + strings.Repeat("k", 256)},
	{"1 a /req/x?req=a", "1 a /req/x?req=a", "1 a /req/x", "1 a /req-dry/x?req=a", "1 a /delayed/x?req=b", "1 a /delayed/x?req=b", "1 a /delayed/x?req=b", "1 a /wait/x?req=a", "1 a /wait/x?req=a"},
}

// TestLimitConnAsNginx: who is let in while others are held, what is said of it, and what the error
// log says.
func TestLimitConnAsNginx(t *testing.T) {
	sameOnBoth(t, startNginx, func(t *testing.T, start starter) (lines []string) {
		h, _ := startHolding(t, start, limitConnConf)
		for _, steps := range limitConnSteps {
			for _, step := range steps {
				lines = append(lines, step+": "+h.limited(step))
			}
			h.let()
			lines = append(lines, "let go")
		}
		return append(lines, h.said("limits.log", "limiting", "delaying", "more than")...)
	})
}

// limited does one step: the last byte of the client's address, the host, the target.
func (h *holding) limited(step string) string {
	h.t.Helper()
	f := strings.Fields(step)
	got, done := h.try("127.0.0."+f[0], "GET "+f[2]+" HTTP/1.1\r\nHost: "+f[1]+".example\r\n\r\n")
	if !done {
		return "held"
	}
	return fmt.Sprint(got.None, got.Status, got.Fields["X-Limit"])
}

// logHead is what differs at the beginning of an error log's line: time, process, connection.
var logHead = regexp.MustCompile(`^\S+ \S+ (\[\w+\]) \d+#\d+: (\*\d+ )?`)

// said are the lines of an error log that hold one of the words.
func (h *holding) said(name string, words ...string) (lines []string) {
	h.t.Helper()
	content, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		for _, word := range words {
			if strings.Contains(line, word) {
				lines = append(lines, volatile.ReplaceAllString(logHead.ReplaceAllString(strings.TrimSpace(line), "$1 "), "*"))
				break
			}
		}
	}
	return lines
}
