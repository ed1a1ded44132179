// Package ocsp requests the revocation of certificates from responders, and keeps their responses for TLS handshakes.
package ocsp

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
)

// requestTimeout bounds one request.
const requestTimeout = time.Minute

// maxResponse bounds what is read of a response.
const maxResponse = 64 << 10

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: requestTimeout} // without the environment's proxies

// fetch requests the status of a certificate from a responder.
func fetch(ctx context.Context, responder string, cert, issuer *x509.Certificate) ([]byte, error) {
	request, err := ocsp.CreateRequest(cert, issuer, nil)
	if err != nil {
		return nil, err
	}
	target := strings.TrimSuffix(responder, "/") + "/" + url.QueryEscape(base64.StdEncoding.EncodeToString(request))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("OCSP responder sent invalid status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if len(raw) > maxResponse {
		err = errors.New("OCSP responder sent too much")
	}
	return raw, err
}
