package engine_test

import (
	"strings"
	"testing"
)

// Methods, hosts and fields are refused as nginx 1.31.5 refuses them, and the connection ends.
func TestRequestChecks(t *testing.T) {
	s := serve(t, server(`listen 80; large_client_header_buffers 4 1k; max_headers 5; location / { return 200 ok; }`))
	host := func(name string) string { return "GET / HTTP/1.1\r\nHost: " + name + "\r\n\r\n" }
	absolute := func(name string) string { return "GET http://" + name + "/ HTTP/1.1\r\nHost: a\r\n\r\n" }
	field := func(lines ...string) string {
		return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	for request, want := range map[string]int{
		"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n":                                                405,
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n":                                      405,
		"CONNECT [::1]:443 HTTP/1.1\r\nHost: a:443\r\n\r\n":                                  405,
		"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n":                                              400,
		"CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n":                                             400,
		"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n":                                              400,
		"get / HTTP/1.1\r\nHost: a\r\n\r\n":                                                  400,
		"M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n":                                             200,
		field("Authorization: a", "authorization: a"):                                        400,
		field("If-None-Match: a", "If-None-Match: b"):                                        400,
		field("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"):                    400,
		field("Expect: a", "Expect: b"):                                                      400,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n":       400,
		"GET / HTTP/1.1\r\nHost: a\r\nAccept: a\r\nAccept: b\r\nX-A: 1\r\nX-A: 2\r\n\r\n":    200,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nIf-Range: a\r\nExpect: \r\n\r\n": 200,
		field("A: 1", "A: 2", "B: 3", "C: 4"):                                                200,
		field("A: 1", "A: 2", "B: 3", "C: 4", "D: 5"):                                        400,
		field("A: 1", "A: 2", "B: 3", "C: 4", "d_e: not counted"):                            200,
		field("A: " + strings.Repeat("a", 1024-len("A: \r\n"))):                              200,
		field("A: " + strings.Repeat("a", 1025-len("A: \r\n"))):                              400,
		host("a.:65535"):          200,
		host("[::1]:"):            200,
		host("a_b!$&'()*+,;=~%2"): 200,
		host("a.:1.2"):            400,
		host("a:65536"):           400,
		host("a:80:80"):           400,
		host("a\\b"):              400,
		host("[::1]."):            400,
		host("[::1"):              400,
		host("x[::1]"):            400,
		host("[::1]x"):            400,
		host("."):                 400,
		host("a..b"):              400,
		absolute("a.:65535"):      200,
		absolute("a:65536"):       400,
		absolute("a_b"):           400,
		absolute("u@a"):           400,
		absolute(""):              400,
		absolute("a..b"):          400,
	} {
		got := s.send(request)
		if got.StatusCode != want || got.StatusCode != 200 && !got.Close {
			t.Errorf("%q: %d, close %v, want %d", request, got.StatusCode, got.Close, want)
		}
	}
}

// The error log has nginx's texts, and the access log what nginx knows of such a request.
func TestRefusedRequestsAreLogged(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `error_log error.log info; events {} http { log_format r '$status $host $uri "$http_host"';
		access_log access.log r; server { server_name first; location / { return 200 ok; } } }`})
	for _, tt := range []struct{ request, access, text string }{
		{"get / HTTP/1.1\r\nHost: a\r\n\r\n", `400 first - "-"`, "invalid method while reading client request line"},
		{"POST /\r\n\r\n", `400 first - "-"`, "invalid method in HTTP/0.9 request while reading client request line"},
		{"GET x HTTP/1.1\r\nHost: a\r\n\r\n", `400 first - "-"`, "invalid request while reading client request line"},
		{"GET /../x HTTP/1.1\r\nHost: a\r\n\r\n", `400 first  "-"`, "invalid request while reading client request line"},
		{"GET / HTTP/2.0\r\n\r\n", `505 first - "-"`, "invalid version while reading client request line"},
		{"GET http://a..b/ HTTP/1.1\r\nHost: a\r\n\r\n", `400 first / "-"`, "invalid host in request line while reading client request line"},
		{"GET / HTTP/1.1\r\nHost: .\r\n\r\n", `400 first / "."`, "invalid host header while reading client request headers"},
		{"GET / HTTP/1.1\r\n\r\n", `400 first / "-"`, `HTTP/1.1 request without "Host" header while reading client request headers`},
		{"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", `400 a / "a"`, `invalid "Content-Length" header while reading client request headers`},
		{"GET / HTTP/1.1\r\nHost: a\r\nA\x01b: c\r\n\r\n", `400 a / "a"`, `invalid header line: "A\x01..." while reading client request headers`},
		{"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", `400 a / "a"`, `invalid header line: "\x20..." while reading client request headers`},
		{"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", `405 a / "a"`, "TRACE method while reading client request headers"},
	} {
		access, errors := len(s.file("access.log")), len(s.file("error.log"))
		s.send(tt.request)
		equal(t, tt.request, s.file("access.log")[access:], tt.access+"\n")
		if got := s.file("error.log")[errors:]; !strings.Contains(got, " client sent "+tt.text+", client: 127.0.0.1, server: first, ") || !strings.Contains(got, "[info]") {
			t.Errorf("%q: logged %q", tt.request, got)
		}
	}
}
