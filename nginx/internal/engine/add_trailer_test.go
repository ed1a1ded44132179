package engine_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"
)

// A trailer without a value is not sent, and the stream of an HTTP/2 client ends without it.
func TestEmptyTrailerOverHTTP2(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, with(server(`listen 443 ssl; http2 on; ssl_certificate a.crt; ssl_certificate_key a.key; add_trailer X-Empty $arg_none;
		location / { return 200 hello; }
		location /more { add_trailer X-More $arg_more; return 200 hello; }`), "a.crt", cert, "a.key", key))
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	for target, want := range map[string]string{"/": "", "/more?more=1": "1"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", "https://"+s.first+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		resp.Body.Close()
		cancel()
		equal(t, "protocol", resp.ProtoMajor, 2)
		equal(t, "body of "+target, string(body), "hello")
		equal(t, "trailer of "+target, resp.Trailer.Get("X-More"), want)
	}
}
