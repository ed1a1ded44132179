// Package http3 speaks HTTP/3 with clients and with targets, by quic-go.
package http3

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// Servers returns two servers of the handler on the same port: one of HTTP/1.1 and HTTP/2 over TCP, whose responses name the
// other one (Alt-Svc, RFC 7838), and one of HTTP/3 over UDP.
func Servers(addr string, certificate *tls.Config, handler http.Handler) (*server.Server, *http3.Server) {
	over3 := &http3.Server{
		Addr: addr, Handler: handler, IdleTimeout: 2 * time.Minute,
		TLSConfig: http3.ConfigureTLSConfig(certificate.Clone()),
	}
	advertise := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = over3.SetQUICHeaders(w.Header()) // an error: it does not listen yet
		handler.ServeHTTP(w, r)
	})
	overTCP := &server.Server{
		Addr: addr, Handler: advertise, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		TLSConfig: certificate.Clone(),
	}
	return overTCP, over3
}

// Targets returns a group whose targets speak HTTP/3.
func Targets(roots *tls.Config, targets ...upstream.Target) (*upstream.Group, error) {
	return upstream.New(upstream.Options{
		Name: "app", Scheme: "https",
		Transport: &http3.Transport{
			TLSClientConfig:    roots,
			DisableCompression: true,
			Dial:               dial,
			QUICConfig: &quic.Config{
				HandshakeIdleTimeout: 5 * time.Second, MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 10 * time.Second,
			},
		},
	}, targets...)
}

// dial lets the proxy send a request to the next target where one can't be reached: nothing of it was sent.
func dial(ctx context.Context, addr string, config *tls.Config, quicConfig *quic.Config) (*quic.Conn, error) {
	conn, err := quic.DialAddrEarly(ctx, addr, config, quicConfig)
	if err != nil {
		return nil, &upstream.DialError{Err: err}
	}
	return conn, nil
}
