// Package mtls has clients and targets prove who they are by certificates.
package mtls

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// Clients returns a server that only clients with a certificate of ca reach.
func Clients(certificate tls.Certificate, ca *x509.CertPool, handler http.Handler) *server.Server {
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca,
	}
	return &server.Server{Addr: ":8443", Handler: handler, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second}
}

// Targets returns a group whose targets must have a certificate of ca for the name app.internal, regardless of their addresses
// are, and which proves who it is by certificate.
func Targets(certificate tls.Certificate, ca *x509.CertPool, targets ...upstream.Target) (*upstream.Group, error) {
	return upstream.New(upstream.Options{
		Name: "app", Scheme: "https",
		TLSConfig: &tls.Config{RootCAs: ca, ServerName: "app.internal", Certificates: []tls.Certificate{certificate}},
	}, targets...)
}

// Gateway returns a handler whose targets learn the client's name by a header field.
func Gateway(app *upstream.Group) (http.Handler, error) {
	handler, err := proxy.New(proxy.Options{Upstream: app, Rewrite: func(o *proxy.Outbound) {
		o.SetXForwarded()
		o.Out.Header.Del("X-Client-Name") // a client may have sent one
		if state := o.In.TLS; state != nil && len(state.VerifiedChains) > 0 {
			o.Out.Header.Set("X-Client-Name", state.VerifiedChains[0][0].Subject.CommonName)
		}
	}})
	if err != nil {
		return nil, err
	}
	return filters.NewChain().Then(handler), nil
}
