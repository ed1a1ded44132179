package header

import (
	"net/http"
	"strings"
)

// SanitizeRequest removes from r.Header the fields that must not be forwarded, and returns
// the protocol of r's upgrade, "" for none.
//
// Trailers that Connection lists are removed at the end of the body.
//
// Afterwards Connection and Upgrade hold exactly that protocol or are absent, and TE holds
// "trailers" or is absent. A second call changes nothing, so that a chain and the proxy
// inside it may both call it.
//
// protocols is the list of allowed protocols, compared without case. nil allows all:
// "websocket" is chosen if it is offered, else the first well-formed offer. h2c, HTTP and TLS
// are never chosen: an upgrade to them would hide the following requests from every filter.
func SanitizeRequest(r *http.Request, protocols []string) (protocol string) {
	if r.Header == nil { // a request that was not made by a server
		r.Header = http.Header{}
	}
	h := r.Header
	protocol = RequestedProtocol(r, protocols)
	r.Body = TrailerGuard(r, r.Body)
	trailers := HasToken(h["Te"], "trailers")
	RemoveHopByHop(h)
	if trailers {
		h["Te"] = []string{"trailers"}
	}
	if protocol != "" {
		setUpgrade(h, protocol)
	}
	return protocol
}

// Receive is SanitizeRequest for what sees a server's request first; it allows all protocols.
func Receive(r *http.Request) {
	SanitizeRequest(r, nil)
	if r.Trailer == nil && r.ContentLength < 0 {
		// net/http sets trailers that were not announced on this very *Request.
		// A filter that copies the request would lose them; the copies share a map.
		r.Trailer = make(http.Header)
	}
}

// SanitizeResponse removes from h, the header of a response with the given status, the fields
// that must not be forwarded. The same rules apply to interim responses, a 101 and final
// responses.
//
// protocol is the protocol that a 101 switches to. It must be "" for every other response. A
// 426 keeps its Upgrade field, which names the protocols that the client may request (RFC
// 9110 section 15.5.22).
func SanitizeResponse(status int, h http.Header, protocol string) {
	var required []string
	if status == http.StatusUpgradeRequired {
		required = h["Upgrade"]
	}
	option := h["Connection"]
	RemoveHopByHop(h)
	switch {
	case protocol != "":
		setUpgrade(h, protocol)
		if len(option) == 1 && strings.EqualFold(option[0], "upgrade") { // as it is spelt
			h["Connection"] = option
		}
		delete(h, "Content-Length") // a 101 has no content (RFC 9110 section 15.2)
	case required != nil:
		h["Connection"] = []string{"Upgrade"}
		h["Upgrade"] = required
	}
}

func setUpgrade(h http.Header, protocol string) {
	h["Connection"] = []string{"Upgrade"}
	h["Upgrade"] = []string{protocol}
}
