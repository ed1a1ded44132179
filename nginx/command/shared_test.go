//go:build unix

package command_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// reload serves other lines of http and waits until they are in force: /version must return
// version.
func (p *process) reload(http, version string) {
	p.t.Helper()
	p.write(http)
	p.signal(syscall.SIGHUP)
	p.eventually("served the new configuration", func() bool { return p.get("/version") == version })
}

// errors returns the error log without its process's number.
func (p *process) errors() string {
	return strings.ReplaceAll(p.file("error.log"), fmt.Sprintf("%d#%[1]d:", p.cmd.Process.Pid), "PID:")
}

// refused reports whether a limit refuses the request.
func (p *process) refused(path string) bool {
	p.t.Helper()
	return strings.Contains(p.get(path), "503 Service Temporarily Unavailable")
}

// Limits continue over a reload: a bucket is kept as full as it is, and requests under the old
// configuration count under the new one.
func TestReloadKeepsZones(t *testing.T) {
	app, received, release := slow(t)
	limited := func(version string) string {
		return "limit_req_zone $arg_a zone=r:1m rate=1r/m; limit_conn_zone $arg_a zone=c:1m;\n" +
			"server { listen ADDRESS; default_type text/plain; location /version { return 200 " + version + "; }\n" +
			"location /req { limit_req zone=r; try_files /none =204; }\n" +
			"location /conn { limit_conn c 1; proxy_pass http://" + app + "; } }"
	}
	p := startProcess(t, limited("old"))
	if p.refused("/req?a=x") || !p.refused("/req?a=x") {
		t.Error("limit_req does not limit")
	}
	held := wiretest.Dial(t, p.address)
	held.Send("GET /conn?a=x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	wiretest.Await(t, received, "request")
	for _, version := range []string{"new", "newer"} {
		p.reload(limited(version), version)
		if !p.refused("/req?a=x") || p.refused("/req?a="+version) {
			t.Errorf("%s: the buckets are not those of before", version)
		}
		if !p.refused("/conn?a=x") {
			t.Errorf("%s: a request of the old configuration does not count", version)
		}
	}
	release()
	if _, body := held.Response("GET"); body != "slow" {
		t.Errorf("the request that was in flight got %q", body)
	}
	p.eventually("let the next one in", func() bool { return p.get("/conn?a=x") == "slow" })
	p.signal(syscall.SIGTERM)
	p.ended()
}

// A zone of another size, or one that was not in the last configuration, begins anew; one of
// another key is an error.
func TestReloadOfOtherZones(t *testing.T) {
	limited := func(version, zones string) string {
		return zones + " server { listen ADDRESS; default_type text/plain; location /version { return 200 " + version + "; }\n" +
			"location /req { limit_req zone=r; try_files /none =204; } }"
	}
	const before = "limit_req_zone $arg_a zone=r:1m rate=1r/m; limit_conn_zone $arg_a zone=c:1m;"
	p := startProcess(t, limited("old", before))
	if p.refused("/req?a=x") || !p.refused("/req?a=x") {
		t.Error("limit_req does not limit")
	}
	for zones, want := range map[string]string{
		strings.Replace(before, "req_zone $arg_a", "req_zone $arg_b", 1): `[emerg] PID: limit_req "r" uses the "$arg_b" key while previously it used the "$arg_a" key`,
		strings.Replace(before, "conn_zone $arg_a", "conn_zone $uri", 1): `[emerg] PID: limit_conn_zone "c" uses the "$uri" key while previously it used the "$arg_a" key`,
	} {
		p.write(limited("bad", zones))
		p.signal(syscall.SIGHUP)
		p.eventually("logged the error", func() bool { return strings.Contains(p.errors(), want+"\n") })
		if got := p.get("/version"); got != "old" || !p.refused("/req?a=x") {
			t.Errorf("the old configuration is not served any more: %q", got)
		}
	}
	p.reload(limited("larger", strings.Replace(before, "r:1m", "r:2m", 1)), "larger")
	if p.refused("/req?a=x") || !p.refused("/req?a=x") {
		t.Error("a zone of another size does not begin anew")
	}
	p.reload("server { listen ADDRESS; location /version { return 200 none; } }", "none")
	p.reload(limited("again", strings.Replace(before, "r:1m", "r:2m", 1)), "again")
	if p.refused("/req?a=x") {
		t.Error("a zone that was away does not begin anew")
	}
	p.signal(syscall.SIGTERM)
	p.ended()
}

// stub_status counts for the process: connections of old configurations are active, and no count
// begins anew.
func TestReloadKeepsCounts(t *testing.T) {
	app, received, release := slow(t)
	p := startProcess(t, "server { listen ADDRESS; location / { return 200 old; } location /slow { proxy_pass http://"+app+"; } }")
	held := wiretest.Dial(t, p.address)
	held.Send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, received, "request")
	p.write("server { listen ADDRESS; default_type text/plain; location / { stub_status; } location /version { return 200 new; } }")
	p.signal(syscall.SIGHUP)
	accepted, requests := 3, 1 // startProcess has connected too, the counts are requested over one connection
	p.eventually("served the new configuration", func() bool {
		accepted, requests = accepted+1, requests+1
		return p.get("/version") == "new"
	})
	client := wiretest.Dial(t, p.address)
	counted := func(open, writing int) {
		p.eventually("counted", func() bool {
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			requests++
			_, got := client.Response("GET")
			return got == fmt.Sprintf("Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: 0 Writing: %d Waiting: 0 \n",
				open, accepted, accepted, requests, writing)
		})
	}
	counted(2, 2)
	release()
	if _, body := held.Response("GET"); body != "slow" {
		t.Errorf("the request that was in flight got %q", body)
	}
	counted(1, 1)
	p.signal(syscall.SIGTERM)
	p.ended()
}
