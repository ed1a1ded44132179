package wsupgrade

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/culvert-go/culvert/internal/header"
)

// validate checks the target's 101 against the header of the request (RFC 6455 section 4.1, the
// client's part). protocol is the one that the request offers, "" if none. A target that does not
// speak the protocol would otherwise receive the client's bytes as if they were meant for it.
func validate(resp *http.Response, requested http.Header, protocol string) error {
	if protocol == "" {
		return errors.New("101 to a request without an upgrade")
	}
	if resp.ProtoMajor != 1 || resp.ProtoMinor < 1 {
		return fmt.Errorf("101 in %s, which knows no upgrade", resp.Proto)
	}
	if got := resp.Header["Upgrade"]; len(got) != 1 || !strings.EqualFold(textproto.TrimString(got[0]), protocol) {
		return fmt.Errorf("101 with Upgrade %q, requested %q", got, protocol)
	}
	if !header.HasToken(resp.Header["Connection"], "upgrade") {
		return fmt.Errorf("101 with Connection %q", resp.Header["Connection"])
	}
	if !isWebSocket(protocol) {
		return nil
	}
	if got := resp.Header["Sec-Websocket-Accept"]; len(got) != 1 || got[0] != acceptFor(requested.Get("Sec-WebSocket-Key")) {
		return fmt.Errorf("101 with Sec-WebSocket-Accept %q", got)
	}
	if err := validateSubprotocol(resp.Header, requested); err != nil {
		return err
	}
	return validateExtensions(resp.Header, requested)
}

// validateSubprotocol returns an error for a subprotocol that was not offered. An empty field,
// which some servers send and browsers refuse, is removed.
func validateSubprotocol(got, offered http.Header) error {
	const field = "Sec-Websocket-Protocol"
	values := got[field]
	if len(values) == 0 {
		return nil
	}
	if len(values) != 1 {
		return errors.New("101 with several Sec-WebSocket-Protocol fields")
	}
	if values[0] == "" {
		delete(got, field)
		return nil
	}
	for _, line := range offered[field] {
		for item := range strings.SplitSeq(line, ",") {
			if textproto.TrimString(item) == values[0] {
				return nil
			}
		}
	}
	return fmt.Errorf("101 with subprotocol %q, which was not offered", values[0])
}

// validateExtensions returns an error for an extension that was not offered; its parameters are
// left to the two ends. A field that names none is removed.
func validateExtensions(got, offered http.Header) error {
	const field = "Sec-Websocket-Extensions"
	offers, chosen := extensionNames(offered[field]), extensionNames(got[field])
	for name := range chosen {
		if !offers[name] {
			return fmt.Errorf("101 with extension %q, which was not offered", name)
		}
	}
	if len(chosen) == 0 {
		delete(got, field)
	}
	return nil
}

func extensionNames(lines []string) map[string]bool {
	names := make(map[string]bool)
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if name := extensionName(item); name != "" {
				names[name] = true
			}
		}
	}
	return names
}

// acceptFor computes Sec-WebSocket-Accept (RFC 6455 section 4.2.2).
func acceptFor(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
