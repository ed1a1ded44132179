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

// checkAddr returns an error if addr can't be a Target's Addr: an address that can't be dialled would
// otherwise fail each request.
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

var errUser = errors.New("an address has no user: set Authorization in proxy.Options.Rewrite")

// splitHostPort splits addr like net.SplitHostPort, and returns an error if it can't be dialled.
func splitHostPort(addr string) (host, port string, err error) {
	if strings.Contains(addr, "@") && !strings.Contains(addr, "://") { // whose error must not show a password
		return "", "", errUser
	}
	if err := checkNoURL(addr); err != nil {
		return "", "", err
	}
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

// checkNoURL returns an error that says what to write if addr is a URL, or an address with a path.
func checkNoURL(addr string) error {
	scheme, rest, isURL := strings.Cut(addr, "://")
	if !isURL {
		rest = addr
	}
	address, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		address, path = rest[:i], rest[i:]
	}
	if _, _, err := net.SplitHostPort(address); !isURL && (path == "" || err != nil) {
		return nil
	}
	address = address[strings.LastIndexByte(address, '@')+1:]
	advice := fmt.Sprintf("write %q", withPort(scheme, address))
	if isURL && (scheme == "http" || scheme == "https") {
		advice += fmt.Sprintf(", with Target.Scheme %q", scheme)
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if path = strings.TrimSuffix(path, "/"); path != "" {
		advice += fmt.Sprintf(", with Target.Path %q", path)
	}
	return fmt.Errorf("an address has neither a scheme nor a path: %s", advice)
}

// withPort adds the scheme's port to a URL's host that has none.
func withPort(scheme, host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "port"
	switch scheme {
	case "http", "ws":
		port = "80"
	case "https", "wss":
		port = "443"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// checkPort refuses names of services, too: a port is also used in URLs.
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

// checkName allows a name with a dot at its end. Names outside of ASCII are left to the resolver.
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

// isName reports whether s consists of characters that a name may have.
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
