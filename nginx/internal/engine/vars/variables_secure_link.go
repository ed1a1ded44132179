package vars

var secureLinkVariables = map[string]Getter{
	"secure_link":         nonEmpty((*Request).secureLink),
	"secure_link_expires": nonEmpty((*Request).secureLinkExpires),
}

// linkState holds the values of $secure_link and $secure_link_expires at their first use. They
// are kept when the request is redirected.
type linkState struct {
	link, expires           string
	linkKnown, expiresKnown bool
}

func (r *Request) secureLink() string {
	if s := &r.link; !s.linkKnown && r.Location != nil {
		s.link, r.linkExpires = r.Location.SecureLink()
		s.linkKnown = true
	}
	return r.link.link
}

// secureLinkExpires returns "" if it is used before $secure_link, as in nginx.
func (r *Request) secureLinkExpires() string {
	if s := &r.link; !s.expiresKnown {
		s.expires, s.expiresKnown = r.linkExpires, true
	}
	return r.link.expires
}

// Redirected drops what nginx's modules do not keep over an internal redirect.
func (r *Request) Redirected() {
	r.linkExpires = ""
	if r.Upstream != nil && len(r.Upstream.Attempts) > 0 {
		r.passed = append(r.passed, len(r.Upstream.Attempts))
	}
}

// Join takes over the values that a finished subrequest was the first to use, and the client's
// address, which belongs to the connection that both share.
func (r *Request) Join(sub *Request) {
	r.link = sub.link
	r.PeerAddr, r.HTTP.RemoteAddr = sub.PeerAddr, sub.HTTP.RemoteAddr
}
