// Package acme gets certificates from an ACME server, Let's Encrypt for instance, when they are needed, and renews them.
package acme

import (
	"net/http"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/culvert-go/culvert/server"
)

// Server returns a server with certificates for the hosts, which it keeps in the folder. It must be reached on port 443:
// the ACME server checks that by a connection to it (RFC 8737). client selects an ACME server; nil means Let's Encrypt.
func Server(handler http.Handler, folder string, client *acme.Client, hosts ...string) *server.Server {
	certificates := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(folder),        // several gateways share one
		HostPolicy: autocert.HostWhitelist(hosts...), // or clients choose what is requested
		Client:     client,
	}
	return &server.Server{
		Addr: ":443", Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: certificates.TLSConfig(),
	}
}

// Redirect is the handler of port 80.
func Redirect(w http.ResponseWriter, r *http.Request) {
	target := *r.URL
	target.Scheme, target.Host = "https", r.Host
	http.Redirect(w, r, target.String(), http.StatusPermanentRedirect)
}
