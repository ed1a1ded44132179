package engine_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/statuspage"
)

// The page shows the upstreams that are used, and counts requests by the status that is logged.
func TestCulvertStatus(t *testing.T) {
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/broken") {
			w.WriteHeader(500)
		}
	}))
	s := serve(t, map[string]string{"nginx.conf": `error_log stderr warn;
events {}
http { access_log off; upstream app { server ` + target + `; server ` + wiretest.Unused(t) + ` backup; server ` + wiretest.Unused(t) + ` down; } upstream unused { server 127.0.0.1:1; }
server { listen 80;
location / { proxy_pass http://app; }
location /none { return 444; }
location /own { return 503; }
location = /status { culvert_status on; allow all; }
location = /off { culvert_status off; } } }`})
	for path, want := range map[string]int{"/a": 200, "/broken": 500, "/own": 503, "/off": 404} {
		if got := s.request("GET", path); got.StatusCode != want {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n")
	if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
		t.Errorf("444: %q %v", rest, err)
	}
	page := s.request("GET", "/status")
	if page.StatusCode != 200 || page.Header.Get("Cache-Control") != "no-store" || !strings.Contains(page.body, "<h2>app <small>http</small></h2>") || strings.Contains(page.body, "<form") {
		t.Errorf("%s %v\n%s", page.Status, page.Header, page.body)
	}
	if got := s.request("POST", "/status"); got.StatusCode != 403 {
		t.Errorf("a change: %s", got.Status)
	}
	var got statuspage.Snapshot
	for got.Requests.Total < 7 || got.InFlight > 1 { // half a second old at most, and a response is received before its request has ended
		if err := json.Unmarshal([]byte(s.request("GET", "/status?json").body), &got); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.Groups) != 1 || got.Groups[0].Name != "app" {
		t.Fatalf("groups %+v", got.Groups)
	}
	states := ""
	for _, target := range got.Groups[0].Targets {
		states += target.State + " "
	}
	app := got.Groups[0]
	if got.InFlight != 1 || got.Requests.Errors != 2 || app.Requests.Total != 2 || app.Requests.Errors != 1 || app.Targets[0].Requests != app.Requests || states != "up up down " {
		t.Errorf("%+v", got)
	}
	if strings.Contains(s.errors.String(), "culvert_status") {
		t.Errorf("a page that is restricted is warned of: %s", s.errors)
	}
}

// Where it may be, and what is warned of.
func TestCulvertStatusInAFile(t *testing.T) {
	for directives, want := range map[string]string{
		"culvert_status on;":                                     `"culvert_status" directive is not allowed here`,
		"location / { culvert_status maybe; }":                   `invalid value "maybe" in "culvert_status" directive, it must be "on" or "off"`,
		"location / { culvert_status; }":                         `invalid number of arguments in "culvert_status" directive`,
		"location / { culvert_status on; culvert_status on; }":   `"culvert_status" directive is duplicate`,
		"location / { if ($arg_a) { culvert_status on; } }":      `"culvert_status" directive is not allowed here`,
		"location / { culvert_statuses on; }":                    `unknown directive "culvert_statuses"`,
		"location / { limit_except GET { culvert_status on; } }": `"culvert_status" directive is not allowed here`,
	} {
		if _, err := load(t, server("listen 80; "+directives)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", directives, err, want)
		}
	}
	const warning = `"culvert_status" without "allow" and "deny", "auth_basic" or "auth_request" shows addresses to every client`
	for directives, want := range map[string]bool{
		"location / { culvert_status on; }":                                                    true,
		"location / { culvert_status off; }":                                                   false,
		"allow 127.0.0.1; deny all; location / { culvert_status on; }":                         false,
		"location / { culvert_status on; deny 10.0.0.1; }":                                     false,
		"location / { auth_basic off; auth_basic_user_file f; culvert_status on; }":            true,
		"location / { auth_basic a; auth_basic_user_file f; culvert_status on; }":              false,
		"location / { auth_request /a; culvert_status on; }":                                   false,
		"location / { auth_request /a; location /b { auth_request off; culvert_status on; } }": true,
	} {
		s, err := load(t, map[string]string{"nginx.conf": "error_log stderr warn;\nevents {}\nhttp { access_log off; server { listen 80; " + directives + " } }"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(s.errors.String(), warning); got != want {
			t.Errorf("%s: %s", directives, s.errors)
		}
	}
}
