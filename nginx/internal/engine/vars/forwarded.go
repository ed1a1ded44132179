package vars

import (
	"net/netip"
	"slices"
	"strings"
)

// Forwarded returns the client's address of a request from a peer: the last address of the lines
// if the peer is trusted, or if recursive is set the last one that is not trusted
// (ngx_http_get_forwarded_addr). An address that can't be parsed ends the search.
func Forwarded(peer netip.AddrPort, lines []string, trusted []netip.Prefix, recursive bool) netip.AddrPort {
	if !Trusts(trusted, peer.Addr()) {
		return peer
	}
	return ForwardedTo(peer, lines, trusted, recursive)
}

// Trusts reports whether an address is one of the trusted.
func Trusts(trusted []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a.Unmap().WithZone("")) })
}

// ForwardedTo is Forwarded for a peer that is trusted in any case.
func ForwardedTo(peer netip.AddrPort, lines []string, trusted []netip.Prefix, recursive bool) netip.AddrPort {
	var items []string
	for _, line := range lines {
		items = append(items, strings.FieldsFunc(line, func(c rune) bool { return c == ',' || c == ' ' })...)
	}
	for _, item := range slices.Backward(items) {
		next, ok := ParseAddr(item)
		if !ok {
			return peer
		}
		if peer = next; !recursive || !Trusts(trusted, peer.Addr()) {
			return peer
		}
	}
	return peer
}

// ParseAddr parses an address with or without a port.
func ParseAddr(s string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at, true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return netip.AddrPortFrom(a, 0), err == nil
}
