package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// checkAddr returns why addr can't be a Target's Addr. An address that can't be dialled would fail
// request by request.
func checkAddr(addr string) error {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		switch {
		case !strings.HasPrefix(path, "/"):
			return errors.New("the path of a unix socket must be absolute")
		case strings.Contains(path, "\x00"):
			return errors.New("the path of a unix socket has a NUL byte")
		}
		return nil
	}
	host, _, err := splitHostPort(addr)
	if err != nil {
		return err
	}
	if standsForSocket(host) {
		return fmt.Errorf("the name stands for a unix socket; use %s/path", unixPrefix)
	}
	return nil
}

// splitHostPort is net.SplitHostPort for what can be dialled.
func splitHostPort(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	switch {
	case err != nil:
		return "", "", err
	case host == "" || port == "":
		return "", "", errors.New("host and port are both needed")
	}
	if err := checkPort(port); err != nil {
		return "", "", err
	}
	return host, port, checkHost(host)
}

// checkPort does not know services by their names: a port stands in URLs, too.
func checkPort(port string) error {
	n, err := strconv.ParseUint(port, 10, 16) // which takes no sign
	if err != nil || n == 0 {
		return fmt.Errorf("port %q is no number from 1 to 65535", port)
	}
	return nil
}

// checkHost allows IP addresses, with a zone or not, and names.
func checkHost(host string) error {
	ip, zone, _ := strings.Cut(host, "%")
	if addr, err := netip.ParseAddr(ip); err == nil {
		if zone == "" && ip != host || zone != "" && (addr.Is4() || !isName(zone)) {
			return fmt.Errorf("%q has no valid zone", host)
		}
		return nil
	}
	return checkName(host)
}

// checkName allows a name with a dot at its end. Names outside of ASCII are the resolver's matter.
func checkName(name string) error {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" {
			return fmt.Errorf("the name %q has an empty label", name)
		}
		if !isName(label) {
			return fmt.Errorf("%q is neither an IP address nor a name", name)
		}
	}
	return nil
}

// isName reports whether s has the characters of a name alone.
func isName(s string) bool {
	for _, c := range s {
		switch {
		case c == unicode.ReplacementChar:
			return false
		case c == '-', c == '_', c == '.', unicode.IsLetter(c), unicode.IsDigit(c), c > unicode.MaxASCII && unicode.IsMark(c):
		default:
			return false
		}
	}
	return true
}
