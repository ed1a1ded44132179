package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
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
	// Cert and Key are files.
	Cert string `json:"cert"`
	Key  string `json:"key"`
	// Server is the address of the API server, CA a file with the authorities of its certificate, and Token one with the
	// token of a user who may impersonate.
	Server     string `json:"server"`
	CA         string `json:"ca"`
	ServerName string `json:"serverName"`
	Token      string `json:"token"`
	Users      []User `json:"users"`
	// Grace is how many seconds requests may continue when the gateway stops; 0 means 30.
	Grace int `json:"grace"`
}

// User is a client.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
	// TokenSHA256 is the hash of the user's token, in hexadecimal digits.
	TokenSHA256 string `json:"tokenSHA256"`
	// Teams are the values of the label "team" of what the user sees.
	Teams []string `json:"teams"`
	// Exec lets the user run commands in pods, attach and forward ports.
	Exec bool `json:"exec"`
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

// users returns the users by their tokens' hashes.
func (c Config) users() (map[[sha256.Size]byte]*User, error) {
	users := map[[sha256.Size]byte]*User{}
	var errs []error
	if len(c.Users) == 0 {
		errs = append(errs, errors.New("users: there are none"))
	}
	for i := range c.Users {
		u := &c.Users[i]
		hash, err := hex.DecodeString(u.TokenSHA256)
		switch {
		case u.Name == "":
			errs = append(errs, fmt.Errorf("users: number %d has no name", i+1))
		case err != nil || len(hash) != sha256.Size:
			errs = append(errs, fmt.Errorf("users: %s: tokenSHA256 is no SHA-256 in hexadecimal digits", u.Name))
		case users[[sha256.Size]byte(hash)] != nil:
			errs = append(errs, fmt.Errorf("users: %s has the token of another user", u.Name))
		case strings.HasPrefix(u.Name, "system:"):
			errs = append(errs, fmt.Errorf("users: %s is a name of Kubernetes' own", u.Name))
		default:
			users[[sha256.Size]byte(hash)] = u
		}
	}
	return users, errors.Join(errs...)
}

func (c Config) tlsConfig() (*tls.Config, error) {
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: %s has no certificate", c.CA)
	}
	return &tls.Config{RootCAs: roots, ServerName: c.ServerName}, nil
}

func (c Config) grace() time.Duration {
	if c.Grace == 0 {
		return 30 * time.Second
	}
	return time.Duration(c.Grace) * time.Second
}
