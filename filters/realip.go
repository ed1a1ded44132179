package filters

import (
	"errors"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/head"
)

// RealIPOptions configures RealIP.
type RealIPOptions struct {
	// Trusted are the networks of the proxies in front of this gateway. Required:
	// whoever is in them can claim to be anybody. Loopback and private networks
	// are trusted only if they are listed.
	Trusted []netip.Prefix
	// Field is where those proxies write the client's address:
	// "X-Forwarded-For", "Forwarded" (RFC 7239), or the name of a field with one
	// address, such as "X-Real-IP". "" means X-Forwarded-For. Take a field that
	// each of the proxies sets or removes: one that they hand on unseen is the
	// client's to write.
	Field string
}

// RealIP returns a filter that finds out which client a request came from, where
// the connection's other end is a proxy that is trusted. It goes from the right
// of the field to the left and takes the first address that is not trusted
// itself, so that what the client has made up on the left is never reached. What
// can't be read ends the search at the last address that could.
//
// ClientAddr, the access logs, upstream.IPHash and Outbound.SetXForwarded use what
// it finds; r.RemoteAddr stays. From peers that are not trusted, Field and the
// fields in which a proxy tells of its client are removed, also where they are
// written with underscores for hyphens: those that proxy.Outbound.Out lists. It
// belongs at the left of a Chain, before the logs.
//
// An error is returned if no network is trusted.
func RealIP(o RealIPOptions) (Filter, error) {
	if len(o.Trusted) == 0 {
		return nil, errors.New("filters: RealIP trusts nobody: RealIPOptions.Trusted is empty")
	}
	for _, p := range o.Trusted {
		if !p.IsValid() {
			return nil, errors.New("filters: RealIP: a network is not valid")
		}
	}
	if o.Field == "" {
		o.Field = "X-Forwarded-For"
	}
	f := &realIP{trusted: slices.Clone(o.Trusted), field: textproto.CanonicalMIMEHeaderKey(o.Field)}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, f.look(r))
		})
	}, nil
}

// ClientAddr returns the address of r's client: the one that RealIP has found, or
// the other end of the connection. It is the zero Addr where that has none.
func ClientAddr(r *http.Request) netip.Addr { return client.Addr(r) }

type realIP struct {
	trusted []netip.Prefix
	field   string
}

// look returns r with what is known of its client.
func (f *realIP) look(r *http.Request) *http.Request {
	peer := client.Peer(r)
	if !f.trusts(peer) {
		head.RemoveClaims(r.Header, false)
		head.RemoveSpellings(r.Header, f.field)
		return r
	}
	i := &client.Info{Addr: peer}
	if f.field == "Forwarded" {
		f.readForwarded(i, r.Header[f.field])
	} else {
		f.readList(i, r.Header[f.field])
		i.Proto = protoOf(last(r.Header["X-Forwarded-Proto"]))
		i.Host = hostOf(last(r.Header["X-Forwarded-Host"]))
	}
	return r.WithContext(client.With(r.Context(), i))
}

func (f *realIP) trusts(addr netip.Addr) bool {
	for _, p := range f.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// step goes one address to the left, and says whether to go on.
func (f *realIP) step(i *client.Info, hop string) bool {
	addr, ok := parseHop(hop)
	if !ok {
		return false
	}
	i.Addr = addr
	i.Via = append(i.Via, addr.String())
	return f.trusts(addr)
}

func (f *realIP) readList(i *client.Info, lines []string) {
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var hop string
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, hop = line[:comma], line[comma+1:]
			} else {
				hop, more = line, false
			}
			if !f.step(i, hop) {
				slices.Reverse(i.Via)
				return
			}
		}
	}
	slices.Reverse(i.Via)
}

// readForwarded is readList for RFC 7239. Host and proto are those of the
// outermost element that a trusted proxy has written.
func (f *realIP) readForwarded(i *client.Info, lines []string) {
	defer func() { slices.Reverse(i.Via) }()
	for _, line := range slices.Backward(lines) {
		elements, ok := parseForwarded(line)
		if !ok {
			return
		}
		for _, e := range slices.Backward(elements) {
			if proto := protoOf(e["proto"]); proto != "" {
				i.Proto = proto
			}
			if host := hostOf(e["host"]); host != "" {
				i.Host = host
			}
			if !f.step(i, e["for"]) {
				return
			}
		}
	}
}

// parseHop reads an address as proxies write it: with or without a port, IPv6 with
// or without brackets.
func parseHop(s string) (netip.Addr, bool) {
	s = textproto.TrimString(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		s = s[1 : len(s)-1]
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}

// last is the last element of a list: what the nearest proxy has written.
func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	return textproto.TrimString(line[strings.LastIndexByte(line, ',')+1:])
}

func protoOf(s string) string {
	switch s = strings.ToLower(s); s {
	case "http", "https":
		return s
	}
	return ""
}

// hostOf returns s if it can be a Host: it will stand in redirects and logs.
func hostOf(s string) string {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(".-_:[]", c) >= 0:
		default:
			return ""
		}
	}
	return s
}
