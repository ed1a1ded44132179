package filters

import (
	"errors"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/header"
)

// RealIPOptions configures RealIP.
type RealIPOptions struct {
	// Trusted are the networks of the proxies in front of this gateway. Required. A peer
	// in one of them can claim any client's address. Loopback and private networks are
	// trusted only if they are listed.
	Trusted []netip.Prefix
	// Field is the header field in which those proxies send the client's address:
	// "X-Forwarded-For", "Forwarded" (RFC 7239), or the name of a field with one
	// address, such as "X-Real-IP". "" means X-Forwarded-For. Each of the proxies must set
	// or remove the field: if a proxy passes it on unchanged, the client can forge it.
	Field string
}

// RealIP returns a filter that determines the client of a request whose connection comes
// from a trusted proxy. It reads the addresses in the field from right to left, and takes
// the first one that is not trusted: addresses that the client has forged are to the left
// of it. If an address can't be parsed, it takes the one to the right of it or, if there is
// none, that of the peer.
//
// ClientAddr, the access logs, upstream.IPHash and Outbound.SetXForwarded use the
// address. r.RemoteAddr is not changed. If the peer is not trusted, the filter removes
// Field and the header fields by which proxies describe their client, which
// proxy.Outbound.Out lists, also if they are written with underscores for hyphens. The
// filter belongs at the beginning of a Chain, outside of the logs.
//
// It returns an error if Trusted is empty or has an invalid network.
func RealIP(o RealIPOptions) (culvert.Filter, error) {
	if len(o.Trusted) == 0 {
		return nil, errors.New("filters: RealIP: RealIPOptions.Trusted is empty")
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
			next.ServeHTTP(w, f.identify(r))
		})
	}, nil
}

// ClientAddr returns the address of r's client: the one that RealIP has found, else the
// peer's in r.RemoteAddr. It is the zero Addr if that can't be parsed.
func ClientAddr(r *http.Request) netip.Addr { return client.Addr(r) }

type realIP struct {
	trusted []netip.Prefix
	field   string
}

// identify returns r with the Info of its client in its context. If the peer is not trusted, it
// removes the fields that describe a client, and returns r.
func (f *realIP) identify(r *http.Request) *http.Request {
	peer := client.Peer(r)
	if !f.trusts(peer) {
		header.RemoveClaims(r.Header, false)
		header.RemoveSpellings(r.Header, f.field)
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

// addHop takes hop for the client's address if it can be parsed. It reports whether that address is trusted, so
// that the next one to the left must be read.
func (f *realIP) addHop(i *client.Info, hop string) bool {
	addr, ok := parseHop(hop)
	if !ok {
		return false
	}
	i.Addr = addr
	i.Via = append(i.Via, addr.String())
	return f.trusts(addr)
}

// readList reads a comma-separated list of addresses from right to left.
func (f *realIP) readList(i *client.Info, lines []string) {
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var hop string
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, hop = line[:comma], line[comma+1:]
			} else {
				hop, more = line, false
			}
			if !f.addHop(i, hop) {
				slices.Reverse(i.Via)
				return
			}
		}
	}
	slices.Reverse(i.Via)
}

// readForwarded is readList for Forwarded. Host and proto are those of the leftmost
// element that a trusted proxy has written.
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
			if !f.addHop(i, e["for"]) {
				return
			}
		}
	}
}

// parseHop parses an address as proxies write it: with or without a port, IPv6 with
// or without brackets. It removes a zone.
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

// last returns the last element of a list, which the nearest proxy has written.
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

// hostOf returns s if it has only the characters of a Host, else "". It is used in redirects and logs.
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
