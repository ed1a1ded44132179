package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// startMaster starts nginx with a master and a worker: a process alone loses connections in a reload.
func startMaster(t *testing.T, conf string, files map[string]string) *server {
	t.Helper()
	return startServer(t, "/usr/sbin/nginx", files, conf, "-g", "daemon off; user root; pid nginx.pid;")
}

// reload makes the server read another configuration.
func (h *holding) reload(conf string) {
	h.t.Helper()
	writeFiles(h.t, h.dir, map[string]string{"nginx.conf": strings.ReplaceAll(conf, "{{LISTEN}}", h.address)})
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		h.t.Fatal(err)
	}
}

// serve is reload, and returns when VERSION is served. It returns the number of requests that it has sent.
func (h *holding) serve(conf, version string) (requests int) {
	h.t.Helper()
	left := len(h.said("error.log", "gracefully shutting down"))
	h.reload(strings.ReplaceAll(conf, "VERSION", version))
	waitFor(h.t, version, func() bool {
		requests++
		responses := exchange(h.t, h.address, "", get("/version", "Connection: close"), "GET")
		return responses[0].Body == version
	})
	if h.cmd.Path != culvertNginx { // there the old worker accepts connections until its signal
		waitFor(h.t, "end of the old worker", func() bool { return len(h.said("error.log", "gracefully shutting down")) > left })
	}
	return requests
}

const reloadConf = `events {}
error_log error.log notice;
http { access_log off; default_type text/plain;
limit_req_zone $arg_a zone=r:1m rate=1r/m; limit_conn_zone $arg_a zone=c:1m;
server { listen {{LISTEN}};
  location /version { return 200 "VERSION"; }
  location /status { stub_status; }
  location /req/ { limit_req zone=r; proxy_pass {{UP}}; }
  location /burst/ { limit_req zone=r burst=5 nodelay; proxy_pass {{UP}}; }
  location /conn/ { limit_conn c 1; proxy_pass {{UP}}; }
  location / { proxy_pass {{UP}}; } } }
`

// TestReloadAsNginx: limits whose zones are the same continue after a reload, and so do the
// counts; a zone with another key is refused.
func TestReloadAsNginx(t *testing.T) {
	sameOnBoth(t, startMaster, func(t *testing.T, start starter) (lines []string) {
		h, conf := startHolding(t, start, reloadConf)
		requests := func(targets ...string) {
			for _, target := range targets {
				got, done := h.try("", get(target))
				lines = append(lines, fmt.Sprint(target, " ", done, " ", got.Status))
			}
		}
		serve := func(version string, changes ...string) {
			h.serve(strings.NewReplacer(changes...).Replace(conf), version)
			lines = append(lines, "served "+version)
		}
		refuse := func(changes ...string) {
			before := len(h.said("error.log", "while previously"))
			h.reload(strings.NewReplacer(changes...).Replace(conf))
			waitFor(t, "the refusal", func() bool { return len(h.said("error.log", "while previously")) > before })
		}
		requests("/req/x?a=1", "/req/x?a=1", "/burst/x?a=2", "/burst/x?a=2", "/burst/x?a=2", "/conn/held?a=1", "/conn/x?a=1")
		serve("same")
		requests("/req/x?a=1", "/req/x?a=2", "/req/x?a=3", "/conn/x?a=1", "/conn/x?a=2")
		serve("other limits", "rate=1r/m", "rate=1r/s", "burst=5", "burst=1", "limit_conn c 1", "limit_conn c 2")
		requests("/burst/x?a=4", "/burst/x?a=4", "/burst/x?a=4", "/conn/held?a=1", "/conn/x?a=1")
		refuse("req_zone $arg_a", "req_zone $arg_b")
		refuse("conn_zone $arg_a", "conn_zone $arg_b")
		refuse("conn_zone $arg_a", "conn_zone ${arg_a}")
		requests("/conn/x?a=1", "/version")
		serve("another size", "r:1m", "r:2m", "c:1m", "c:2m")
		requests("/req/x?a=1", "/req/x?a=1", "/conn/held?a=1", "/conn/x?a=1")
		h.let()
		requests("/conn/x?a=1")
		serve("names swapped", "zone=r:1m", "zone=c:2m", "zone=c:1m", "zone=r:2m", "zone=r", "zone=c", "limit_conn c", "limit_conn r")
		requests("/req/x?a=1", "/req/x?a=1", "/conn/x?a=1")
		serve("away", "limit_req zone=r burst=5 nodelay;", "", "limit_req zone=r;", "", "limit_req_zone $arg_a zone=r:1m rate=1r/m;", "")
		serve("back")
		requests("/req/x?a=1", "/req/x?a=1")
		return append(lines, h.said("error.log", "while previously")...)
	})
}

// TestReloadKeepsStatus: counts are the process's.
func TestReloadKeepsStatus(t *testing.T) {
	sameOnBoth(t, startMaster, func(t *testing.T, start starter) (lines []string) {
		h, conf := startHolding(t, start, reloadConf)
		h.try("", get("/conn/held?a=1"))
		requests := h.serve(conf, "new")
		s := &statusReader{holding: h, over: h.connect("")}
		s.tells("after a reload", fmt.Sprintf("2 %d %[1]d %d 0 2 0", requests+3, requests+1))
		return lines
	})
}
