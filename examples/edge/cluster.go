package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// cluster is an API server, and the gateway's own credentials for it.
type cluster struct {
	server            string
	caFile            string
	ca                []byte
	serverName        string
	insecure          bool
	token, tokenFile  string
	certFile, keyFile string
	cert, key         []byte
}

// proxyTo returns a proxy to the server. With a certificate it is authenticated as the gateway
// itself; callers must not use that one, since the certificate would override their tokens. tunnels
// lists what is upgraded; nil does not.
func (c *cluster) proxyTo(name string, withCertificate bool, tunnels *wsupgrade.Registry) (*proxy.Proxy, *upstream.Group, error) {
	group, err := c.group(name, withCertificate)
	if err != nil {
		return nil, nil, err
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"websocket", "SPDY/3.1"}, Dial: group.Dial, TLSConfig: group.TLSConfig(), Registry: tunnels})
	if err != nil {
		group.Close()
		return nil, nil, err
	}
	p, err := proxy.New(proxy.Options{Upstream: group, Upgrades: upgrades, Rewrite: func(*proxy.Outbound) {}})
	if err != nil {
		group.Close()
		return nil, nil, err
	}
	return p, group, nil
}

func (c *cluster) group(name string, withCertificate bool) (*upstream.Group, error) {
	u, err := url.Parse(c.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the server %q: want http://host:port or https://host:port", c.server)
	}
	o := upstream.Options{Name: name, Scheme: u.Scheme}
	if u.Scheme == "https" {
		o.Protocol = upstream.HTTP2 // watches are many, and mostly silent
		if o.TLSConfig, err = c.tls(withCertificate); err != nil {
			return nil, err
		}
	}
	address := u.Host
	if u.Port() == "" {
		address += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	return upstream.New(o, upstream.Target{Addr: address})
}

func (c *cluster) tls(withCertificate bool) (*tls.Config, error) {
	t := &tls.Config{ServerName: c.serverName, InsecureSkipVerify: c.insecure}
	pem := c.ca
	if len(pem) == 0 && c.caFile != "" {
		var err error
		if pem, err = os.ReadFile(c.caFile); err != nil {
			return nil, fmt.Errorf("the certificates that the server is trusted by: %w", err)
		}
	}
	if len(pem) > 0 {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("the certificates that the server is trusted by: none in %s", c.caFile)
		}
	}
	if withCertificate && (c.certFile != "" || len(c.cert) > 0) {
		if _, err := c.certificate(); err != nil {
			return nil, err
		}
		// Read for each connection: kubelet and others renew them in place.
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate() }
	}
	return t, nil
}

func (c *cluster) certificate() (*tls.Certificate, error) {
	var certificate tls.Certificate
	var err error
	if len(c.cert) > 0 {
		certificate, err = tls.X509KeyPair(c.cert, c.key)
	} else {
		certificate, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("the gateway's certificate: %w", err)
	}
	return &certificate, nil
}

// authorized adds the gateway's own token to requests without credentials.
func (c *cluster) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := c.token
		if c.tokenFile != "" {
			text, err := os.ReadFile(c.tokenFile) // tokens of service accounts are renewed in place
			if err != nil {
				http.Error(w, "the gateway's token can't be read", http.StatusInternalServerError)
				return
			}
			token = strings.TrimSpace(string(text))
		}
		if token != "" && !hasCredentials(r) {
			r = r.WithContext(r.Context()) // r.Clone would lose trailers, which net/http puts into r's own map
			r.Header = r.Header.Clone()
			r.Header.Set("Authorization", "Bearer "+token)
		}
		next.ServeHTTP(w, r)
	})
}

// bearerProtocol begins the subprotocol in which a browser has to give its bearer token.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// hasCredentials reports whether a caller says who it is: such a caller must not get the gateway's
// rights.
func hasCredentials(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || strings.Contains(strings.Join(r.Header["Sec-Websocket-Protocol"], ","), bearerProtocol)
}
