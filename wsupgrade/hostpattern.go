package wsupgrade

import (
	"errors"
	"net/netip"
	"strings"
)

// hostPattern is a host, or all names below one.
type hostPattern struct {
	name  string     // in lower case; "" for an address
	below bool       // the names below name, but not name itself
	addr  netip.Addr // zero for a name
}

var (
	errNoScheme = errors.New("an origin begins with http:// or https://")
	errPort     = errors.New("the port is not a number from 1 to 65535 without leading zeros")
	errBrackets = errors.New("not a host, or an IPv6 address without brackets")
	errAddress  = errors.New("in the brackets is no IPv6 address")
	errZone     = errors.New("browsers send no zone of an address")
	errStar     = errors.New(`"*" is only possible as the whole first label of a name: "*.app.example"`)
	errHost     = errors.New("a host has no port, and an IPv6 address no brackets here")
	errEmpty    = errors.New("the name has an empty label: it is empty, or begins or ends with a dot, or has two in a row")
	errLong     = errors.New("a label has more than 63 bytes, or the name more than 253")
	errPunycode = errors.New(`the name is not ASCII: browsers send it in punycode ("xn--…")`)
	errByte     = errors.New("the name has a character that names do not have")
	errNumber   = errors.New("browsers take a name that ends with a number for an IPv4 address: write all four parts, in decimal")
)

// matches reports whether p is host or covers it. host is not a pattern itself.
func (p hostPattern) matches(host hostPattern) bool {
	if p.below {
		return strings.HasSuffix(host.name, p.name) && strings.HasSuffix(strings.TrimSuffix(host.name, p.name), ".")
	}
	return p == host
}

// parseHostPattern parses a host, or "*." and a name.
func parseHostPattern(s string) (p hostPattern, err error) {
	name, below := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return p, errStar
	}
	if p, err = parseHost(name); err != nil {
		return p, err
	}
	switch p.below = below; {
	case below && p.addr.IsValid():
		return p, errStar
	case below && len(name) > maxName-len("a."):
		return p, errLong
	}
	return p, nil
}

// parseHost parses a name or an address, that of IPv6 without brackets.
func parseHost(s string) (p hostPattern, err error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return p, errZone
		}
		return hostPattern{addr: addr}, nil
	}
	if strings.ContainsAny(s, "[]:") {
		return p, errHost
	}
	if err := checkName(s); err != nil {
		return p, err
	}
	return hostPattern{name: strings.ToLower(s)}, nil
}

// parseBrackets parses an IPv6 address in brackets.
func parseBrackets(s string) (p hostPattern, err error) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	switch {
	case err != nil || !strings.HasSuffix(s, "]") || !addr.Is6():
		return p, errAddress
	case addr.Zone() != "":
		return p, errZone
	}
	return hostPattern{addr: addr}, nil
}

// maxName is the maximum length of a name (RFC 1035 section 2.3.4, without the root's dot).
const maxName = 253

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// checkName refuses a name that no browser sends.
func checkName(s string) error {
	if strings.ContainsFunc(s, func(c rune) bool { return c > 0x7f }) {
		return errPunycode
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if last = label; label == "" {
			return errEmpty
		}
		if strings.Trim(label, nameBytes) != "" {
			return errByte
		}
		if len(label) > 63 {
			return errLong
		}
	}
	switch {
	case len(s) > maxName:
		return errLong
	case isNumber(last):
		return errNumber
	}
	return nil
}

// isNumber reports whether a name that ends with the label is taken for an IPv4 address
// (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
