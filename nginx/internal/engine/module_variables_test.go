package engine

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The modules' variables have the values of the request's level, or of what the modules have
// stored.
func TestVariablesOfModules(t *testing.T) {
	x := &exchange{level: newLevel(), engine: &Engine{prefix: "/srv", shared: sharedFrom(shared{})}}
	x.Owner, x.URI, x.BodyBytes = x, "/a b", 800
	x.HTTP = httptest.NewRequest("GET", "/a%20b", nil)
	x.HTTP.RemoteAddr = "192.0.2.7:4711"
	x.gzip.applies, x.Header = true, http.Header{"Content-Encoding": {"gzip"}}
	x.gzip.in, x.rate.perSecond, x.proxy.host, x.proxy.port = 1700, 4096, "console", "80"
	x.limits.req = "DELAYED"
	scope := newScope(modules())
	for text, want := range map[string]string{
		"$document_root":                          "/srv/html",
		"$request_filename":                       "/srv/html/a b",
		"$realpath_root":                          "",
		"$gzip_ratio":                             "2.13",
		"$limit_rate":                             "4096",
		"$proxy_host:$proxy_port":                 "console:80",
		"$limit_req_status-$limit_conn_status":    "DELAYED-",
		"$invalid_referer$uid_got$uid_set":        "",
		"$secure_link$secure_link_expires":        "",
		"$connections_active":                     "0",
		"$realip_remote_addr:$realip_remote_port": "192.0.2.7:4711",
	} {
		v, err := scope.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := v.String(&x.Request); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
