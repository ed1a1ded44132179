package engine_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A refused request ends only its own stream: the HTTP/2 connection, with the streams of others,
// is kept. Over HTTP/1.1 nginx closes the connection after these statuses.
func TestConnectionBehindARefusedRequest(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, with(server(`listen 443 ssl; http2 on; ssl_certificate a.crt; ssl_certificate_key a.key;
		location / { return 200 hello; }
		location /bad { return 400; }
		location /large { client_max_body_size 1; return 200; }
		location /fails { return 500; }`), "a.crt", cert, "a.key", key))
	for _, http2 := range []bool{true, false} {
		conns := 0
		transport := &http.Transport{ForceAttemptHTTP2: http2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conns++
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
		for _, target := range []string{"/bad", "/large", "/fails", "/"} {
			resp, err := client.Post("https://"+s.first+target, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			equal(t, "HTTP/2", resp.ProtoMajor == 2, http2)
			equal(t, "success of "+target, resp.StatusCode == http.StatusOK, target == "/")
		}
		equal(t, "connections", conns, map[bool]int{true: 1, false: 4}[http2])
		transport.CloseIdleConnections()
	}
}
