package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/culvert-go/culvert/upstream"
)

// cluster is an API server and the credentials for it.
type cluster struct {
	server, caFile, tokenFile string
}

// group returns an upstream group of the server.
func (c cluster) group() (*upstream.Group, error) {
	u, err := url.Parse(c.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("-server %s: want http://host:port or https://host:port", c.server)
	}
	o := upstream.Options{Name: "apiserver", Scheme: u.Scheme}
	if c.caFile != "" {
		if o.TLSConfig, err = trusting(c.caFile); err != nil {
			return nil, err
		}
	}
	address := u.Host
	if u.Port() == "" {
		address += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	return upstream.New(o, upstream.Target{Addr: address})
}

func trusting(caFile string) (*tls.Config, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-ca %s: no certificate in it", caFile)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// authorize adds the token to a request. The file is read each time: tokens of service accounts
// are renewed in place.
func (c cluster) authorize(h http.Header) error {
	if c.tokenFile == "" {
		return nil
	}
	token, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return err
	}
	h.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}
