package watchcodec

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// bearerProtocol is the prefix of the subprotocol that carries a bearer token, since a browser
// can't set the Authorization field of a WebSocket handshake (k8s.io/apiserver,
// pkg/authentication/request/websocket).
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

const protocolHeader = "Sec-Websocket-Protocol"

// webSocketToken returns the bearer token among the subprotocols that r offers, "" if there is
// none, and the other subprotocols. The rules are kube-apiserver's: at most one token, and with it
// at least one other subprotocol, of which the first is selected.
func webSocketToken(r *http.Request) (token string, others []string, err error) {
	found := false
	for _, value := range r.Header[protocolHeader] {
		for offered := range strings.SplitSeq(value, ",") {
			offered = strings.TrimSpace(offered)
			encoded, ok := strings.CutPrefix(offered, bearerProtocol)
			if !ok {
				others = append(others, offered)
				continue
			}
			decoded, err := base64.RawURLEncoding.DecodeString(encoded)
			switch {
			case found:
				return "", nil, errors.New("several bearer tokens in Sec-WebSocket-Protocol")
			case err != nil || !utf8.Valid(decoded) || strings.ContainsAny(string(decoded), "\r\n\x00"):
				return "", nil, errors.New("the bearer token in Sec-WebSocket-Protocol can't be decoded")
			}
			found, token = true, string(decoded)
		}
	}
	if token != "" && len(others) == 0 {
		return "", nil, errors.New("a bearer token in Sec-WebSocket-Protocol without another subprotocol")
	}
	return token, others, nil
}

// withBearer returns r with the bearer token of its subprotocols in the Authorization field. An
// invalid token is refused later.
func withBearer(r *http.Request) *http.Request {
	token, _, _ := webSocketToken(r)
	if token == "" || r.Header["Authorization"] != nil {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}
