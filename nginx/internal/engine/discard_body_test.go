package engine_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A malformed chunked body is refused also where nothing reads the body, and what is behind a well-formed one is another request.
func TestMalformedChunks(t *testing.T) {
	s := serve(t, with(server(`root html; location /text { return 200 text; } location /moved { return 301 /x; } location /gone { return 410; } location / { }`), "html/f", "file"))
	const head = " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for path, status := range map[string]int{"/text": 200, "/moved": 301, "/f": 200} {
		for _, body := range []string{"zz\r\n", "4\r\nSEE-THIS\r\n0\r\n\r\n", "5\r\nhello\r\n-1\r\n"} {
			equal(t, path+" "+body, s.send("GET "+path+head+body).StatusCode, 400)
		}
		client := wiretest.Dial(t, s.first)
		for range 2 {
			client.Send("GET " + path + head + "5\r\nhello\r\n0\r\n\r\n")
			if got, _ := client.Response("GET"); got.StatusCode != status {
				t.Errorf("%s: %d, want %d", path, got.StatusCode, status)
			}
		}
		client.Send("GET " + path + head + "100\r\n" + strings.Repeat("x", 0x100)) // the rest may come
		if got, _ := client.Response("GET"); got.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, got.StatusCode, status)
		}
	}
	equal(t, "an error", s.send("GET /gone"+head+"zz\r\n").StatusCode, 410)
	equal(t, "a half body", s.send("GET /text"+head+"5\r\nhel").StatusCode, 200)
}

// A response does not wait for the rest of a body that it does not need.
func TestResponseBeforeTheBodysEnd(t *testing.T) {
	s := serve(t, server(`location / { return 200 text; }`))
	for _, body := range []string{"", "5", "5\r\n", "5\r\nhe", "5\r\nhello\r\n", "5\r\nhello\r\n0\r\n", "0\r\n", "0\r\nA: b\r\n"} {
		client := wiretest.Dial(t, s.first)
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
		if got, _ := client.Response("POST"); got.StatusCode != 200 {
			t.Errorf("%q: %d", body, got.StatusCode)
		}
	}
}
