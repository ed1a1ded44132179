package engine_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Mistakes that a client can make, and their effects.
func TestBadRequests(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll("location / { proxy_pass http://UP; }", "UP", echo(t))))
	tests := []struct {
		about, request string
		status         int
		body           string // "" for any
	}{
		{"no field name", "GET / HTTP/1.1\r\nHost: h\r\nbad head\r\n\r\n", 400, builtin("400 Bad Request")},
		{"control character", "GET / HTTP/1.1\r\nHost: h\r\nX: a\x01b\r\n\r\n", 400, builtin("400 Bad Request")},
		{"space before the colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400, builtin("400 Bad Request")},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, builtin("400 Bad Request")},
		{"no Host", "GET / HTTP/1.1\r\n\r\n", 400, builtin("400 Bad Request")},
		{"two different Content-Lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, builtin("400 Bad Request")},
		{"unknown transfer coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: x, chunked\r\n\r\n", 501, builtin("501 Not Implemented")},
		{"malformed escape", "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, builtin("400 Bad Request")},
		{"both lengths", "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 400, builtin("400 Bad Request")},
		{"X-Forwarded-For named away", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, X-Forwarded-For\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
			200, "GET / UP [] "},
		{"malformed chunk", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, builtin("400 Bad Request")},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			got := s.send(tt.request)
			equal(t, "status", got.StatusCode, tt.status)
			if tt.body != "" {
				seen := got.body
				if i := strings.Index(seen, "127.0.0.1:"); i >= 0 {
					seen = seen[:i] + "UP" + seen[i+strings.IndexByte(seen[i:], ' '):]
				}
				equal(t, "body", seen, tt.body)
			}
		})
	}
}

// A streamed body that ends early never looks complete to the upstream, and of one that is not streamed the upstream sees
// nothing. It is logged as the client's disconnect or fault, never as the upstream's.
func TestBodyEndsEarly(t *testing.T) {
	got := make(chan error, 1)
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	go func() {
		conn, err := up.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer conn.Close()
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			got <- err
			return
		}
		_, err = io.ReadAll(r.Body)
		got <- err
	}()
	s := serve(t, map[string]string{"nginx.conf": `events {} http { log_format s $status; access_log s.log s;
		server { location / { proxy_pass http://` + up.Addr().String() + `; }
			location /streamed { proxy_request_buffering off; proxy_pass http://` + up.Addr().String() + `; } } }`})
	post := func(path string) {
		conn, err := net.Dial("tcp", s.first)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: h\r\nContent-Length: 99999\r\n\r\nhalf")
		conn.Close()
	}
	post("/")
	logged := eventually(t, func() string { return s.file("s.log") })
	if logged != "400\n" || len(got) > 0 {
		t.Errorf("logged %q, the upstream was asked: %v", logged, len(got) > 0)
	}
	post("/streamed")
	if err := <-got; err != io.ErrUnexpectedEOF {
		t.Errorf("the upstream read the body to %v", err)
	}
	logged = eventually(t, func() string { return strings.TrimPrefix(s.file("s.log"), "400\n") })
	if logged != "499\n" && logged != "400\n" {
		t.Errorf("logged %q", logged)
	}
}

// eventually waits until get returns something.
func eventually(t *testing.T, get func() string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if s := get(); s != "" {
			return s
		}
	}
	t.Fatal("nothing came")
	return ""
}

// As in nginx Origin is not checked, and the bytes of the tunnel are counted.
func TestUpgradeOfAForeignPage(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		log_format u "$status $body_bytes_sent $upstream_status"; access_log u.log u;
		server { add_header X-Plain 1; add_header X-Always 1 always;
			location / { proxy_pass http://UP; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; } }
	}`, "UP", tomcat(t, nil))})
	conn, resp, err := websocket.DefaultDialer.Dial("ws://"+s.first+"/serviceName/ws", http.Header{"Origin": {"http://elsewhere.test"}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "X-Plain", resp.Header.Get("X-Plain"), "")
	equal(t, "X-Always", resp.Header.Get("X-Always"), "1")
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != "hello" {
		t.Fatal(string(got), err)
	}
	conn.Close()
	// two bytes of frame header and the echoed text
	equal(t, "logged", eventually(t, func() string { return s.file("u.log") }), "101 7 101\n")
	equal(t, "a plain request", s.get("/serviceName/ws").StatusCode, http.StatusNotFound)
}

// A malformed handshake is refused, with the error pages.
func TestUpgradeRefusals(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`location / { proxy_pass http://UP; proxy_set_header Upgrade $http_upgrade;
		proxy_set_header Connection upgrade; error_page 426 /old; }
		location = /old { return 200 "too old"; }`, "UP", tomcat(t, nil))))
	handshake := "GET /serviceName/ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	equal(t, "no key", s.send(handshake+"Sec-WebSocket-Version: 13\r\n\r\n").StatusCode, http.StatusBadRequest)
	old := s.send(handshake + "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	equal(t, "old version", old.StatusCode, http.StatusUpgradeRequired)
	equal(t, "old version's page", old.body, "too old")
}

// A tunnel in which no data is sent ends after proxy_read_timeout.
func TestIdleTunnelEnds(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`location / { proxy_pass http://UP; proxy_read_timeout 100ms;
		proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }`, "UP", tomcat(t, nil))))
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+s.first+"/serviceName/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, _, err = conn.ReadMessage()
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the tunnel is still open")
	}
}

// An upstream that accepts a connection and never responds to the upgrade times out.
func TestStalledUpgrade(t *testing.T) {
	s := serve(t, server(`location / { proxy_pass http://`+raw(t, "")+`; proxy_read_timeout 50ms;
		proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }`))
	_, resp, err := websocket.DefaultDialer.Dial("ws://"+s.first+"/", nil)
	if err == nil || resp == nil {
		t.Fatal(err)
	}
	equal(t, "status", resp.StatusCode, http.StatusGatewayTimeout)
}

// A client that stops in the middle of its body receives 408, for which the configuration may
// have a page.
func TestStalledRequestBody(t *testing.T) {
	s := serve(t, server(`client_body_timeout 50ms; error_page 408 = /slow; location = /slow { return 408 "too slow"; }
		location / { proxy_pass http://`+raw(t, "")+`; }`))
	got := s.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
	equal(t, "status", got.StatusCode, http.StatusRequestTimeout)
	equal(t, "page", got.body, "too slow")
}
