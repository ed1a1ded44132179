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
)

// Config is the content of the configuration file.
type Config struct {
	Listen string `json:"listen"`
	// Cert and Key are files. Without them clients speak cleartext HTTP/2.
	Cert string `json:"cert"`
	Key  string `json:"key"`
	// Groups are the servers, by the names that Routes use.
	Groups map[string]Group `json:"groups"`
	// Routes are methods ("/shop.v1.Cart/Get") or whole services ("/shop.v1.Cart/") with their groups.
	Routes map[string]Route `json:"routes"`
	// MaxMessage is the largest message of a call that is held for a retry or a hedge; 0 means 4 MiB.
	MaxMessage int64 `json:"maxMessage"`
	// Grace is how long calls may continue when the gateway stops; 0 means 30 seconds.
	Grace Duration `json:"grace"`
}

// Group is a group of servers.
type Group struct {
	Targets []string `json:"targets"`
	// CA is a file with the authorities of the servers' certificates. "" means cleartext HTTP/2.
	CA         string `json:"ca"`
	ServerName string `json:"serverName"`
	// Health is the name of the service whose health is checked; null means that no checks are made.
	Health        *string  `json:"health"`
	CheckInterval Duration `json:"checkInterval"`
}

// Route is what happens to a call.
type Route struct {
	Group string `json:"group"`
	// Idempotent methods are tried on another server after an UNAVAILABLE.
	Idempotent bool `json:"idempotent"`
	// Hedge is the time after which a second server gets the call; 0 means never. Only for unary methods that are
	// idempotent.
	Hedge Duration `json:"hedge"`
	// Timeout is the longest time of a call; 0 means that the client's deadline is the only one.
	Timeout Duration `json:"timeout"`
}

// Duration is a time.Duration that is written as "250ms".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err == nil && parsed < 0 {
		err = fmt.Errorf("the duration %s is negative", text)
	}
	*d = Duration(parsed)
	return err
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
	if err := c.check(); err != nil {
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
	for path, route := range c.Routes {
		if parts := strings.Split(path, "/"); len(parts) != 3 || parts[0] != "" || parts[1] == "" {
			errs = append(errs, fmt.Errorf("routes: %q is neither /service/method nor /service/", path))
		}
		if _, ok := c.Groups[route.Group]; !ok {
			errs = append(errs, fmt.Errorf("routes: %s: there is no group %q", path, route.Group))
		}
		if route.Hedge != 0 && !route.Idempotent {
			errs = append(errs, fmt.Errorf("routes: %s: hedge needs idempotent", path))
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		errs = append(errs, errors.New("cert and key: one of them is missing"))
	}
	return errors.Join(errs...)
}

// tlsConfig returns nil for cleartext.
func (g Group) tlsConfig() (*tls.Config, error) {
	if g.CA == "" {
		if g.ServerName != "" {
			return nil, errors.New("serverName needs ca")
		}
		return nil, nil
	}
	pem, err := os.ReadFile(g.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", g.CA)
	}
	return &tls.Config{RootCAs: roots, ServerName: g.ServerName}, nil
}
