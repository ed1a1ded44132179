package wsupgrade

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert"
)

// check refuses a handshake that must not reach the target (RFC 6455 section 4.2.1). Other
// protocols may have a body; see readBody.
func (f *Forwarder) check(r *http.Request, protocol string) error {
	if _, ok := extended(r); ok {
		return f.checkExtended(r, protocol)
	}
	if !isWebSocket(protocol) {
		return nil
	}
	if r.ContentLength != 0 {
		return refusal(culvert.BadRequest, errors.New("a WebSocket handshake with a body"))
	}
	if r.Method != http.MethodGet {
		return refusal(culvert.BadRequest, fmt.Errorf("a WebSocket handshake with method %s", r.Method))
	}
	if err := checkKey(r.Header["Sec-Websocket-Key"]); err != nil {
		return refusal(culvert.BadRequest, err)
	}
	if err := checkVersion(r.Header["Sec-Websocket-Version"]); err != nil {
		return err
	}
	return f.checkSite(r)
}

// checkSite refuses a WebSocket that a foreign page opens.
func (f *Forwarder) checkSite(r *http.Request) error {
	if !hostAllowed(f.hosts, r.Host) {
		return refusal(culvert.Forbidden, fmt.Errorf("host %q", r.Host))
	}
	if !f.checkOrigin(r) {
		return refusal(culvert.Forbidden, fmt.Errorf("origin %q", r.Header["Origin"]))
	}
	return nil
}

// checkKey returns an error unless there is one key of 16 bytes in base64.
func checkKey(keys []string) error {
	if len(keys) != 1 {
		return fmt.Errorf("%d Sec-WebSocket-Key fields", len(keys))
	}
	if key, err := base64.StdEncoding.DecodeString(keys[0]); err != nil || len(key) != 16 {
		return errors.New("Sec-WebSocket-Key is not 16 bytes in base64")
	}
	return nil
}

// checkVersion returns an error unless the version is 13. A client that requests another number may
// retry with this one; one that sends no number is broken (RFC 6455 section 4.4).
func checkVersion(versions []string) error {
	if len(versions) != 1 {
		return refusal(culvert.BadRequest, fmt.Errorf("%d Sec-WebSocket-Version fields", len(versions)))
	}
	if versions[0] == "13" {
		return nil
	}
	kind := culvert.UpgradeRequired
	if v := versions[0]; v == "" || len(v) > 3 || strings.Trim(v, "0123456789") != "" {
		kind = culvert.BadRequest
	}
	return refusal(kind, fmt.Errorf("Sec-WebSocket-Version %q", versions[0]))
}

// refusal returns an error that the client is to blame for, before a byte was sent.
func refusal(kind culvert.ErrorKind, err error) error { return &culvert.Error{Kind: kind, Err: err} }
