package header

import "net/http"

// SanitizeRequest removes from r.Header what must not travel past this hop
// and returns the protocol that r asks to switch to, "" for none.
//
// The trailers that Connection lists are taken out at the end of the body.
//
// Afterwards Connection and Upgrade hold exactly that protocol or are absent,
// and TE holds "trailers" or is absent. Calling it again changes nothing, so a
// chain and the proxy behind it may both call it.
//
// protocols is the allow-list, compared without case; nil leaves the choice to
// whoever forwards the upgrade: "websocket" if it is offered, else the first
// well-formed offer. h2c, HTTP and TLS are never chosen: an upgrade to them
// would hide the requests that follow from every filter.
func SanitizeRequest(r *http.Request, protocols []string) (protocol string) {
	if r.Header == nil { // a request that no server has made
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

// SanitizeResponse removes from h, the head of an answer with the given
// status, what must not travel past this hop. Interim answers, a 101 and final
// answers go through the same rules.
//
// protocol is what a 101 switches to; it must be "" for every other answer. A
// 426 keeps its Upgrade field, which tells the client what to ask for (RFC
// 9110 section 15.5.22).
func SanitizeResponse(status int, h http.Header, protocol string) {
	var required []string
	if status == http.StatusUpgradeRequired {
		required = h["Upgrade"]
	}
	RemoveHopByHop(h)
	switch {
	case protocol != "":
		setUpgrade(h, protocol)
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
