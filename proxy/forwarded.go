package proxy

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/header"
)

// SetXForwarded sets X-Forwarded-For to the client's address, X-Forwarded-Host to the Host of
// its request and X-Forwarded-Proto to "https" or "http".
//
// It trusts nothing that the client claims. Behind proxies that filters.RealIP trusts,
// X-Forwarded-For lists the client, the trusted proxies between and the connection's peer, and
// Host and Proto are those that the nearest of them reports.
func (o *Outbound) SetXForwarded() {
	values := o.forwarded[:]
	if o.Out.Header["X-Forwarded-Proto"] != nil { // it is called once more
		values = make([]string, 3)
	}
	values[0], values[1], values[2] = client.Forwarded(o.In)
	h := o.Out.Header
	if values[0] != "" {
		h["X-Forwarded-For"] = values[0:1:1]
	}
	h["X-Forwarded-Host"] = values[1:2:2]
	h["X-Forwarded-Proto"] = values[2:3:3]
}

// KeepForwarded restores, as the filters left them, the header fields that were removed from Out because a
// client may forge them. It is for a gateway behind a proxy that sets or removes each of them, or in front of
// a target that checks them. Call it before SetXForwarded, if both are used.
func (o *Outbound) KeepForwarded() {
	for name, lines := range o.In.Header {
		if header.IsClaim(name) {
			o.Out.Header[name] = lines[:len(lines):len(lines)]
		}
	}
}

func override(v *string, with string) {
	if with != "" {
		*v = with
	}
}

// SetForwarded sets the Forwarded field (RFC 7239) to the same facts as SetXForwarded sets in three
// fields: an element for each hop, the client first. Both may be used.
func (o *Outbound) SetForwarded() {
	host, proto := o.In.Host, "http"
	if o.In.TLS != nil {
		proto = "https"
	}
	peer := client.Peer(o.In)
	var b strings.Builder
	if i := client.From(o.In.Context()); i != nil {
		override(&host, i.Host)
		override(&proto, i.Proto)
		for _, hop := range i.Via {
			b.WriteString("for=" + forwardedNode(hop) + ", ")
		}
	}
	b.WriteString("for=")
	if peer.IsValid() {
		b.WriteString(forwardedNode(peer.String()))
	} else {
		b.WriteString("unknown") // RFC 7239 section 6.2
	}
	b.WriteString(";host=" + quoted(host) + ";proto=" + proto)
	o.Out.Header["Forwarded"] = []string{b.String()}
}

// forwardedNode writes an address in the form of RFC 7239 section 6: IPv6 in brackets and quotes.
func forwardedNode(addr string) string {
	if ip, err := netip.ParseAddr(addr); err == nil && ip.Is6() {
		return `"[` + addr + `]"`
	}
	return addr
}

// quoted writes a quoted-string (RFC 9110 section 5.6.4); a Host may hold a colon,
// which a token may not.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// AddVia adds this gateway to the Via field (RFC 9110 section 7.6.3) under a pseudonym, "culvert"
// for instance. A request whose Via already contains the pseudonym is in a loop: see HasVia.
func (o *Outbound) AddVia(pseudonym string) {
	o.Out.Header["Via"] = appendVia(o.Out.Header["Via"], o.In.ProtoMajor, o.In.ProtoMinor, pseudonym)
}

func appendVia(lines []string, major, minor int, pseudonym string) []string {
	version := string(rune('0'+major)) + "." + string(rune('0'+minor))
	if major >= 2 {
		version = string(rune('0' + major))
	}
	return append(lines[:len(lines):len(lines)], version+" "+pseudonym)
}

// HasVia reports whether the Via field of h contains the pseudonym.
func HasVia(h http.Header, pseudonym string) bool {
	for _, line := range h["Via"] {
		for element := range strings.SplitSeq(line, ",") {
			if f := strings.Fields(element); len(f) >= 2 && strings.EqualFold(f[1], pseudonym) {
				return true
			}
		}
	}
	return false
}
