package wsupgrade

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/culvert-go/culvert/internal/fault"
)

// check refuses a handshake that must not reach the target. A body could hold a
// second request for a target that does not switch.
func (f *Forwarder) check(r *http.Request, protocol string) error {
	if r.ContentLength != 0 {
		return refusal(fault.BadRequest, errors.New("an upgrade with a body"))
	}
	if !isWebSocket(protocol) {
		return nil
	}
	if r.Method != http.MethodGet {
		return refusal(fault.BadRequest, fmt.Errorf("a WebSocket handshake with method %s", r.Method))
	}
	if err := checkKey(r.Header["Sec-Websocket-Key"]); err != nil {
		return refusal(fault.BadRequest, err)
	}
	if err := checkVersion(r.Header["Sec-Websocket-Version"]); err != nil {
		return err
	}
	if !f.checkOrigin(r) {
		return refusal(fault.Forbidden, fmt.Errorf("origin %q", r.Header["Origin"]))
	}
	return nil
}

// checkKey wants one key of 16 bytes in base64 (RFC 6455 section 4.1).
func checkKey(keys []string) error {
	if len(keys) != 1 {
		return fmt.Errorf("%d Sec-WebSocket-Key fields", len(keys))
	}
	if key, err := base64.StdEncoding.Strict().DecodeString(keys[0]); err != nil || len(key) != 16 {
		return errors.New("Sec-WebSocket-Key is not 16 bytes in base64")
	}
	return nil
}

// checkVersion wants version 13; another number is one that a client may try
// again without (RFC 6455 section 4.4).
func checkVersion(versions []string) error {
	if len(versions) != 1 {
		return refusal(fault.BadRequest, fmt.Errorf("%d Sec-WebSocket-Version fields", len(versions)))
	}
	if versions[0] == "13" {
		return nil
	}
	kind := fault.UpgradeRequired
	if v := versions[0]; v == "" || len(v) > 3 || strings.Trim(v, "0123456789") != "" {
		kind = fault.BadRequest
	}
	return refusal(kind, fmt.Errorf("Sec-WebSocket-Version %q", versions[0]))
}

// sameOrigin is the default CheckOrigin. A browser always sends an Origin with
// a WebSocket, so a request without one comes from something else.
func sameOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	if len(origins) != 1 {
		return false
	}
	origin, err := url.Parse(origins[0])
	if err != nil || origin.Host == "" {
		return false
	}
	port := map[string]string{"http": "80", "https": "443"}[origin.Scheme]
	return strings.EqualFold(withPort(origin.Host, port), withPort(r.Host, port))
}

func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

func refusal(kind fault.Kind, err error) error { return &fault.Error{Kind: kind, Err: err} }
