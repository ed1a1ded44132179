package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/http1"
)

// maxGRPCService bounds Check.GRPCService.
const maxGRPCService = 1024

// checkRequest returns an error if fields do not go together, or if the request can't be sent: its
// failures would otherwise make every target unhealthy. scheme is the group's.
func (c Check) checkRequest(scheme string) error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("port %d is not from 1 to 65535", c.Port)
	}
	request := c.Method != "" || c.Healthy != nil || c.HealthyBody != nil
	connection := c.Scheme != "" || c.TLSConfig != nil || c.Host != "" || c.Header != nil
	switch {
	case c.Func != nil && (c.Path != "" || c.GRPC || c.GRPCService != "" || c.Port != 0 || request || connection):
		return errors.New("beside Func, neither Path nor GRPC nor what configures them can be set")
	case c.GRPCService != "" && !c.GRPC:
		return errors.New("GRPCService without GRPC")
	case c.GRPC && (c.Path != "" || request):
		return errors.New("beside GRPC, Path, Method, Healthy and HealthyBody can't be set")
	case c.Path == "" && !c.GRPC && (request || connection):
		return errors.New("no Path or GRPC for Method, Scheme, TLSConfig, Host, Header, Healthy or HealthyBody")
	case len(c.GRPCService) > maxGRPCService || !utf8.ValidString(c.GRPCService):
		return fmt.Errorf("GRPCService is not UTF-8 of at most %d bytes", maxGRPCService)
	}
	if err := c.checkScheme(scheme); err != nil {
		return err
	}
	if c.Path != "" {
		if err := c.checkLine(); err != nil {
			return err
		}
	}
	if err := http1.CheckLine(http.MethodGet, c.Host, "/"); err != nil {
		return fmt.Errorf("Host: %w", err)
	}
	return c.checkHeader()
}

func (c Check) checkScheme(group string) error {
	if c.Scheme != "" && c.Scheme != "http" && c.Scheme != "https" {
		return fmt.Errorf("scheme %q is neither http nor https", c.Scheme)
	}
	if c.TLSConfig != nil && c.scheme(group) != "https" {
		return errors.New("TLSConfig needs the scheme https")
	}
	return nil
}

// scheme returns the scheme of c's requests; group is the group's.
func (c Check) scheme(group string) string {
	if c.Scheme != "" {
		return c.Scheme
	}
	return group
}

// checkLine checks the request line.
func (c Check) checkLine() error {
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("path %q does not begin with /", c.Path)
	}
	if err := http1.CheckLine(http.MethodGet, "", c.Path); err != nil {
		return fmt.Errorf("path %q: %w", c.Path, err)
	}
	if strings.Contains(c.Path, "#") {
		return fmt.Errorf("path %q has a fragment", c.Path)
	}
	if _, err := url.ParseRequestURI(c.Path); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	switch {
	case c.Method != "" && !httpguts.ValidHeaderFieldName(c.Method): // both are tokens
		return fmt.Errorf("invalid method %q", c.Method)
	case c.Method == http.MethodConnect:
		return errors.New("the method CONNECT is not possible")
	case c.Method == http.MethodHead && c.HealthyBody != nil:
		return errors.New("HealthyBody with the method HEAD, whose responses have no body")
	}
	return nil
}

func (c Check) checkHeader() error {
	for name, values := range c.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("header: invalid name %q", name)
		}
		if header.IsReserved(name) && !strings.EqualFold(name, "TE") {
			return fmt.Errorf("header: %s is not possible here", name)
		}
		if c.GRPC && (strings.EqualFold(name, "TE") || strings.EqualFold(name, "Content-Type")) {
			return fmt.Errorf("header: GRPC sets %s", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("header: invalid value %q of %s", value, name)
			}
		}
	}
	return nil
}

// checkSocket returns an error if t is a unix socket that can't be checked by o.Check.
func (o *Options) checkSocket(t Target) error {
	c := o.Check
	if c == nil || !addrOf(t.Addr).Unix {
		return nil
	}
	if c.Port != 0 {
		return fmt.Errorf("target %q: Check.Port is set, and a unix socket has no port", t.Addr)
	}
	if config := c.TLSConfig; c.Path == "" && !c.GRPC || c.scheme(t.Scheme) != "https" || c.TLSConfig == nil && (t.ServerName != "" || t.TLSConfig != nil) {
		return nil // checkTLS has looked at t's
	} else if config == nil && o.TLSConfig != nil && (o.TLSConfig.ServerName != "" || o.TLSConfig.InsecureSkipVerify) {
		return nil
	} else if config != nil && (config.ServerName != "" || config.InsecureSkipVerify) {
		return nil
	}
	return fmt.Errorf("target %q: a check by https over a unix socket needs Check.TLSConfig.ServerName", t.Addr)
}

// checkTransport returns the transport of checks that need one of their own, or nil.
func (o Options) checkTransport() *Transport {
	c := o.Check
	if c == nil || c.Scheme == "" && c.TLSConfig == nil && !(c.GRPC && o.Protocol == HTTP1) && o.proxyProtocolOfChecks() == o.ProxyProtocol {
		return nil
	}
	o.ProxyProtocol = o.proxyProtocolOfChecks()
	if scheme := c.scheme(o.Scheme); scheme != o.Scheme {
		o.Scheme, o.Protocol = scheme, HTTP1
	}
	if c.TLSConfig != nil {
		o.TLSConfig = c.TLSConfig
	}
	if c.GRPC {
		o.Protocol = H2C
		if o.Scheme == "https" {
			o.Protocol = HTTP2
		}
	}
	return newTransport(o)
}
