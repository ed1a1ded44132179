package vars

var secureLinkVariables = map[string]Getter{
	"secure_link":         nonEmpty((*Request).secureLink),
	"secure_link_expires": nonEmpty((*Request).secureLinkExpires),
}

// linkState is what $secure_link and $secure_link_expires were when they were first asked
// for, which they stay, wherever else the request goes.
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

// secureLinkExpires is empty to whoever asks before $secure_link, as with nginx.
func (r *Request) secureLinkExpires() string {
	if s := &r.link; !s.expiresKnown {
		s.expires, s.expiresKnown = r.linkExpires, true
	}
	return r.link.expires
}

// Redirected drops what nginx's modules do not keep when a request is redirected inside the
// server.
func (r *Request) Redirected() {
	r.linkExpires = ""
	if r.Upstream != nil && len(r.Upstream.Tries) > 0 {
		r.passed = append(r.passed, len(r.Upstream.Tries))
	}
}

// Join takes over what a subrequest that has ended was first to ask for, and the client's
// address: it is that of the connection, which both have in common.
func (r *Request) Join(sub *Request) {
	r.link = sub.link
	r.PeerAddr, r.HTTP.RemoteAddr = sub.PeerAddr, sub.HTTP.RemoteAddr
}
