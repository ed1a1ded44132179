package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// Config is the content of the configuration file.
type Config struct {
	// Listen is the address for clients, over TCP and UDP; Metrics that of Prometheus' page, "" for none.
	Listen  string `json:"listen"`
	Metrics string `json:"metrics"`
	// Cert and Key are files.
	Cert string `json:"cert"`
	Key  string `json:"key"`
	// Routes are the groups of targets, by the prefixes of their paths.
	Routes map[string]Route `json:"routes"`
	// MaxBody bounds the bodies of requests; 0 means 64 MiB.
	MaxBody int64 `json:"maxBody"`
	// Origins are the pages besides the site's own that may open WebSockets.
	Origins []string `json:"origins"`
	// Grace is how many seconds requests may continue when the edge stops; 0 means 30.
	Grace int `json:"grace"`
}

// Route is a group of targets.
type Route struct {
	Targets []string `json:"targets"`
	// HTTP3 has the targets spoken to over QUIC.
	HTTP3 bool `json:"http3"`
	// CA is a file with the authorities of the targets' certificates, ServerName the name in them.
	CA         string `json:"ca"`
	ServerName string `json:"serverName"`
}

// ReadConfig reads a file. It refuses unknown fields.
func ReadConfig(file string) (Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	var c Config
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// check returns all that is wrong with c.
func (c Config) check() error {
	var errs []error
	if len(c.Routes) == 0 {
		errs = append(errs, errors.New("routes: there are none"))
	}
	for prefix, route := range c.Routes {
		if !strings.HasPrefix(prefix, "/") || !strings.HasSuffix(prefix, "/") || strings.ContainsAny(prefix, " {}") {
			errs = append(errs, fmt.Errorf("routes: %q is no prefix like /media/", prefix))
		}
		if route.HTTP3 && route.CA == "" {
			errs = append(errs, fmt.Errorf("routes: %s: http3 needs ca", prefix))
		}
		if route.ServerName != "" && route.CA == "" {
			errs = append(errs, fmt.Errorf("routes: %s: serverName needs ca", prefix))
		}
	}
	if c.MaxBody < 0 || c.Grace < 0 {
		errs = append(errs, errors.New("maxBody and grace can't be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) grace() time.Duration {
	if c.Grace == 0 {
		return 30 * time.Second
	}
	return time.Duration(c.Grace) * time.Second
}

// tlsConfig is that of the targets; nil means cleartext.
func (r Route) tlsConfig() (*tls.Config, error) {
	if r.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", r.CA)
	}
	return &tls.Config{RootCAs: roots, ServerName: r.ServerName}, nil
}

func (r Route) targets() []upstream.Target {
	targets := make([]upstream.Target, len(r.Targets))
	for i, addr := range r.Targets {
		targets[i] = upstream.Target{Addr: addr}
	}
	return targets
}
