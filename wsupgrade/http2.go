package wsupgrade

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
)

// protocolField is the header field in which net/http puts the pseudo-header of an extended CONNECT
// (RFC 8441 section 4).
const protocolField = ":protocol"

// extended returns what an HTTP/2 request names in :protocol, and whether there is
// one.
func extended(r *http.Request) (protocol string, ok bool) {
	values := r.Header[protocolField]
	if r.ProtoMajor != 2 || len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// checkExtended refuses an extended CONNECT that must not reach the target. net/http accepts what
// RFC 8441 forbids: other methods, and a stream without :scheme, which no handler can tell from one
// that has it.
func (f *Forwarder) checkExtended(r *http.Request, protocol string) error {
	switch {
	case r.Method != http.MethodConnect:
		return refusal(culvert.BadRequest, fmt.Errorf(":protocol with method %s", r.Method))
	case r.ContentLength > 0:
		return refusal(culvert.BadRequest, errors.New("an extended CONNECT with Content-Length"))
	case !f.allows(protocol):
		return refusal(culvert.Unsupported, fmt.Errorf(":protocol %q", protocol))
	case !isWebSocket(protocol):
		return nil
	}
	if err := checkVersion(r.Header["Sec-Websocket-Version"]); err != nil {
		return err
	}
	return f.checkSite(r)
}

// allows reports whether protocol may be upgraded to.
func (f *Forwarder) allows(protocol string) bool {
	if f.protocols == nil {
		return header.Forwardable(protocol)
	}
	return slices.ContainsFunc(f.protocols, func(p string) bool { return strings.EqualFold(p, protocol) })
}

// bridged turns an extended CONNECT into the HTTP/1.1 upgrade that the target is sent, with a key
// of our own: the client has none (RFC 8441 section 5).
func bridged(out *http.Request, protocol string) *http.Request {
	r := *out
	r.Method = http.MethodGet
	r.Header = out.Header.Clone()
	delete(r.Header, protocolField)
	r.Header["Connection"] = []string{"Upgrade"}
	r.Header["Upgrade"] = []string{protocol}
	if isWebSocket(protocol) {
		key := make([]byte, 16)
		_, _ = rand.Read(key) // never fails
		r.Header["Sec-Websocket-Key"] = []string{base64.StdEncoding.EncodeToString(key)}
	}
	return &r
}

// openStream sends the client the header of the response that opens the tunnel on its stream.
func openStream(w http.ResponseWriter, in *http.Request, resp *http.Response, protocol string) (*streamConn, error) {
	header.SanitizeResponse(resp.StatusCode, resp.Header, protocol)
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept"} {
		delete(resp.Header, name) // they have no meaning here (RFC 8441 section 5)
	}
	fields := w.Header()
	for name, values := range resp.Header {
		fields[name] = append(fields[name], values...)
	}
	c := newStreamConn(w, in)
	w.WriteHeader(http.StatusOK)
	if err := c.flush(); err != nil {
		return nil, &culvert.Error{Kind: culvert.ClientGone, BytesSent: true, HeaderSent: true, Err: err}
	}
	return c, nil
}
