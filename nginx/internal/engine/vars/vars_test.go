package vars_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// request returns one with a bit of everything.
func request() *vars.Request {
	r := httptest.NewRequest("GET", "/a%20b?x=1&Y=%20&e=&n", nil)
	r.RemoteAddr = "192.0.2.7:4711"
	r.Host = "Host.Test:8080"
	r.SetBasicAuth("alice", "secret")
	for _, f := range [][2]string{
		{"X-One", "1"}, {"X-Two", "a"}, {"X-Two", "b"}, {"Cookie", "c=1; D=2"}, {"Cookie", "e=3"},
		{"X-Forwarded-For", "198.51.100.1"}, {"Content-Type", "text/x"}, {"X_One_two-three", "under"},
	} {
		r.Header.Add(f[0], f[1])
	}
	return &vars.Request{
		HTTP: r, Line: "GET /a%20b?x=1&Y=%20&e=&n HTTP/1.1", RequestURI: "/a%20b?x=1&Y=%20&e=&n",
		URI: "/a b", Args: "x=1&Y=%20&e=&n", Start: time.Now(), Host: "host.test", ServerName: "first.test",
		Conn: &vars.Conn{Serial: 3}, Status: 9, BodyBytes: 800, Body: body("hello"), Complete: true,
		Header:         http.Header{"Content-Type": {"text/y"}, "X-A": {"1", "2"}},
		UpstreamHeader: http.Header{"Server": {"up"}},
		Upstream: &culvert.Result{Attempts: []culvert.Attempt{
			{Target: "10.0.0.1:1", Total: 5 * time.Millisecond, Err: &culvert.Error{Kind: culvert.DialFailed}},
			{Target: "10.0.0.2:1", Status: 200, TimeToConnect: time.Millisecond, Received: 17, WireSent: 40, WireReceived: 90, TimeToHeader: 3 * time.Millisecond, Total: 1234 * time.Millisecond},
		}},
	}
}

func TestVariables(t *testing.T) {
	tests := map[string]string{
		"plain":                         "plain",
		"$uri":                          "/a b",
		"${uri}x":                       "/a bx",
		"$uri$args":                     "/a bx=1&Y=%20&e=&n",
		"$document_uri":                 "/a b",
		"$request_uri":                  "/a%20b?x=1&Y=%20&e=&n",
		"$request":                      "GET /a%20b?x=1&Y=%20&e=&n HTTP/1.1",
		"$is_args$query_string":         "?x=1&Y=%20&e=&n",
		"$arg_x|$arg_y|$arg_e|":         "1|%20||",
		"$arg_n$arg_none":               "",
		"$host":                         "host.test",
		"$http_host":                    "Host.Test:8080",
		"$http_x_one":                   "1",
		"$http_x_one_two_three":         "under",
		"$http_x_two":                   "a, b",
		"$http_cookie":                  "c=1; D=2; e=3",
		"$cookie_c$cookie_d":            "12",
		"$cookie_e":                     "3",
		"$remote_addr:$remote_port":     "192.0.2.7:4711",
		"$binary_remote_addr":           "\xc0\x00\x02\x07",
		"$remote_user":                  "alice",
		"$scheme$https":                 "http",
		"$server_name":                  "first.test",
		"$server_protocol":              "HTTP/1.1",
		"$request_method":               "GET",
		"$content_type":                 "text/x",
		"$content_length":               "",
		"$status":                       "009",
		"$body_bytes_sent":              "800",
		"$sent_http_content_type":       "text/y",
		"$sent_http_x_a":                "1, 2",
		"$upstream_http_server":         "up",
		"$proxy_add_x_forwarded_for":    "198.51.100.1, 192.0.2.7",
		"$upstream_addr":                "10.0.0.1:1, 10.0.0.2:1",
		"$upstream_status":              "502, 200",
		"$upstream_response_time":       "0.005, 1.234",
		"$upstream_header_time":         "-, 0.003",
		"$connection":                   "3",
		"$is_request_port$request_port": ":8080",
		"$upstream_connect_time":        "-, 0.001",
		"$upstream_response_length":     "0, 17",
		"$upstream_bytes_sent|$upstream_bytes_received":        "0, 40|0, 90",
		"$request_body|$request_body_file|$request_completion": "hello|hello.file|OK",
		"$http2$http3$msie":                         "",
		"$upstream_cache_status$ssl_session_reused": "",
		"$connection_time":                          "0.000",
		"$nginx_version":                            "1.31.5",
		"$1":                                        "",
		"$URI$Host":                                 "/a bhost.test", // names ignore case
		"$$uri":                                     "error",
	}
	scope, r := vars.NewScope(nil), request()
	for text, want := range tests {
		v, err := scope.Compile(text)
		if err != nil {
			if want != "error" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if got := v.String(r); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestVariablesThatDiffer(t *testing.T) {
	shapes := map[string]string{
		"$request_id":     `^[0-9a-f]{32}$`,
		"$msec":           `^\d{10}\.\d{3}$`,
		"$request_time":   `^\d\.\d{3}$`,
		"$time_local":     `^\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}$`,
		"$time_iso8601":   `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$`,
		"$pid":            `^\d+$`,
		"$hostname":       `^\S+$`,
		"$request_length": `^\d{3}$`,
		"$bytes_sent":     `^\d+$`,
	}
	scope, r := vars.NewScope(nil), request()
	for text, shape := range shapes {
		v, err := scope.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		first := v.String(r)
		if !regexp.MustCompile(shape).MatchString(first) {
			t.Errorf("%s: %q", text, first)
		}
		if text == "$request_id" && (v.String(r) != first || v.String(request()) == first) {
			t.Error("$request_id is the same for two requests")
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"$nosuch":     `unknown "nosuch" variable`,
		"a${no_such}": `unknown "no_such" variable`,
		"a$":          `invalid variable name`,
		"$-":          `invalid variable name`,
		"${}":         `invalid variable name`,
		"${uri":       `the closing bracket in "uri" variable is missing`,
		"${uri-x}":    `the closing bracket in "uri" variable is missing`,
	} {
		if _, err := vars.NewScope(nil).Compile(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestCaptures(t *testing.T) {
	scope := vars.NewScope(nil)
	scope.DeclareCapture("name")
	v, err := scope.Compile("$1-$name-$2-$10")
	if err != nil {
		t.Fatal(err)
	}
	r := request()
	r.Capture([]string{"x", "x", ""}, []string{"", "name", ""})
	if got := v.String(r); got != "x-x--x0" {
		t.Errorf("got %q", got)
	}
}

func compile(t *testing.T, s *vars.Scope, text string) vars.Value {
	t.Helper()
	v, err := s.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func expression(t *testing.T, pattern string) *pcre.Regexp {
	t.Helper()
	re, err := pcre.Compile(pattern, false)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

func TestMap(t *testing.T) {
	scope := vars.NewScope(nil)
	hosts := route.NewNames[vars.Value]()
	hosts.Add("*.example.com", vars.Constant("wild"))
	m := &vars.Map{
		Source: compile(t, scope, "$http_key"),
		Exact:  map[string]vars.Value{"a": vars.Constant("A"), "": vars.Constant("empty"), "v": compile(t, scope, "[$uri]")},
		Hosts:  route.Wildcards[vars.Value]{Names: hosts},
		Patterns: []vars.Pattern{
			{Regexp: expression(t, `^n(\d)`), Value: compile(t, scope, "n$1")},
			{Regexp: expression(t, `^(?!n)(a+)+$`), Value: vars.Constant("A")},
		},
		Default: vars.Constant("D"),
	}
	scope.DeclareMap("m", m)
	v := compile(t, scope, "$m")
	for key, want := range map[string]string{
		"a": "A", "A": "A", "": "empty", "v": "[/a b]", "x.example.com": "wild", "n7": "n7", "N7": "D", "other": "D",
	} {
		r := request()
		r.HTTP.Header.Set("Key", key)
		if got := v.String(r); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
		if r.Failed() {
			t.Errorf("%q failed: %v", key, r.TakeFailure())
		}
	}
	r := request()
	r.HTTP.Header.Set("Key", strings.Repeat("a", 60)+"!")
	part := r.Part()
	if got := v.String(&part); got != "D" || !r.Failed() || r.TakeFailure() == nil || part.Failed() {
		t.Errorf("%q for a key that takes too long; failed: %v", got, r.Failed())
	}
}

func TestMapIsEvaluatedOnceUnlessVolatile(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		scope := vars.NewScope(nil)
		m := &vars.Map{Source: compile(t, scope, "$uri"), Default: compile(t, scope, "<$uri>"), Volatile: volatile}
		scope.DeclareMap("m", m)
		v, r := compile(t, scope, "$m"), request()
		first := v.String(r)
		r.URI = "/changed"
		if got := v.String(r); (got == first) == volatile {
			t.Errorf("volatile %v: %q, then %q", volatile, first, got)
		}
	}
}

func TestLine(t *testing.T) {
	r := request()
	r.HTTP.Header.Set("Odd", "q\"b\\c\x01\x7f\xe9é\n")
	for _, tt := range []struct {
		escape vars.Escape
		want   string
	}{
		{vars.EscapeDefault, `<q\x22b\x5Cc\x01\x7F\xE9\xC3\xA9\x0A> -`},
		{vars.EscapeJSON, "<q\\\"b\\\\c\\u0001\x7f\ufffdé\\n> "},
		{vars.EscapeNone, "<q\"b\\c\x01\x7f\xe9é\n> "},
	} {
		line, err := vars.NewScope(nil).CompileLine("<$http_odd> $http_none", tt.escape)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(line.Append(nil, r)); got != tt.want {
			t.Errorf("escape %d: got %q, want %q", tt.escape, got, tt.want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"", "a", "$uri", "${uri}", "a$uri$1b${", "$", "$$", "${}", "$arg_a-$http_b"} {
		f.Add(seed)
	}
	r := request()
	f.Fuzz(func(t *testing.T, text string) {
		v, err := vars.NewScope(nil).Compile(text)
		if err != nil {
			return
		}
		got := v.String(r)
		if !strings.Contains(text, "$") && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if _, constant := v.Literal(); constant == strings.Contains(text, "$") {
			t.Fatalf("%q: constant %v", text, constant)
		}
	})
}

// Times are formatted once per second, and are right in the next one.
func TestTimesAreUpdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scope vars.Scope
		v, err := scope.Compile("$time_iso8601 $time_local $msec")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		for range 2 {
			now := time.Now()
			want := now.Format("2006-01-02T15:04:05-07:00") + " " + now.Format("02/Jan/2006:15:04:05 -0700") + fmt.Sprintf(" %d.%03d", now.Unix(), now.UnixMilli()%1000)
			if got := v.String(request()); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			time.Sleep(509 * time.Millisecond)
		}
	})
}

func TestSeconds(t *testing.T) {
	for ms, want := range map[int64]string{0: "0.000", 9: "0.009", 50: "0.050", 999: "0.999", 1234: "1.234", 61050: "61.050"} {
		if got := vars.Seconds(time.Duration(ms)*time.Millisecond + 999*time.Microsecond); got != want {
			t.Errorf("%d ms: %q, want %q", ms, got, want)
		}
	}
}

// TLS names are OpenSSL's.
func TestTLSVariables(t *testing.T) {
	v, err := vars.NewScope(nil).Compile("$ssl_protocol $ssl_cipher $ssl_curve $ssl_session_reused $ssl_alpn_protocol $http2")
	if err != nil {
		t.Fatal(err)
	}
	for want, state := range map[string]tls.ConnectionState{
		"TLSv1.3 TLS_AES_128_GCM_SHA256 X25519MLKEM768 . h2 h2":        {Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256, CurveID: tls.X25519MLKEM768, NegotiatedProtocol: "h2"},
		"TLSv1.2 ECDHE-RSA-CHACHA20-POLY1305 prime256v1 r http/1.1 h2": {Version: tls.VersionTLS12, CipherSuite: tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, CurveID: tls.CurveP256, DidResume: true, NegotiatedProtocol: "http/1.1"},
		"TLSv1 AES128-SHA  .  h2":                                      {Version: tls.VersionTLS10, CipherSuite: tls.TLS_RSA_WITH_AES_128_CBC_SHA},
		"TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 0x2a2a .  h2":           {Version: tls.VersionTLS12, CipherSuite: tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, CurveID: 0x2a2a},
	} {
		r := request()
		r.HTTPS, r.HTTP.TLS, r.HTTP.ProtoMajor = true, &state, 2
		if got := v.String(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		r := request()
		r.HTTP.TLS = &tls.ConnectionState{Version: tls.VersionTLS12, CipherSuite: suite.ID}
		name := strings.Fields(v.String(r))[1]
		if strings.HasPrefix(name, "TLS_") && !slices.Contains(suite.SupportedVersions, uint16(tls.VersionTLS13)) {
			t.Errorf("%s has no other name", name)
		}
	}
}

// body is a body of this content.
type body string

func (b body) Text() string { return string(b) }

func (b body) Len() int64 { return int64(len(b)) }

func (b body) File() string { return string(b) + ".file" }

// Each variable of nginx's own modules exists: a file that logs one must load.
func TestVariablesWithoutAValue(t *testing.T) {
	for _, name := range []string{"ssl_sigalg", "ssl_client_sigalg",
		"ssl_ech_status", "ssl_ech_outer_server_name", "tcpinfo_rtt", "tcpinfo_rttvar",
		"tcpinfo_snd_cwnd", "tcpinfo_rcv_space",
		"memcached_key", "uid_reset", "proxy_protocol_tlv_alpn", "proxy_protocol_tlv_0xae",
		"upstream_trailer_x", "arg_", "http_", "cookie_", "sent_http_", "upstream_http_"} {
		v, err := vars.NewScope(nil).Compile("[$" + name + "]")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := v.String(request()); got != "[]" {
			t.Errorf("%s is %q", name, got)
		}
	}
}
