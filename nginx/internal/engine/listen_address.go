package engine

import (
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// listenAddr is what a listen directive names: an address and a port, or, if there is a path, a
// unix socket.
type listenAddr struct {
	netip.AddrPort
	path string
}

// maxUnixPath is the maximum length of a unix socket's path on Linux, without the zero byte
// behind it.
const maxUnixPath = 107

// String formats the address as nginx does.
func (a listenAddr) String() string {
	if a.path != "" {
		return unixPrefix + a.path
	}
	return a.AddrPort.String()
}

// forNet returns the arguments of net.Listen.
func (a listenAddr) forNet() (network, address string) {
	switch {
	case strings.HasPrefix(a.path, "@"):
		return "unix", "./" + a.path // to Go, "@" begins an abstract name
	case a.path != "":
		return "unix", a.path
	case a.Addr().Is6():
		return "tcp6", a.AddrPort.String()
	}
	return "tcp4", a.AddrPort.String()
}

// isUnix reports whether an address begins with "unix:", ignoring case.
func isUnix(text string) bool {
	return len(text) >= len(unixPrefix) && strings.EqualFold(text[:len(unixPrefix)], unixPrefix)
}

// unixAddr parses the address of a unix socket (ngx_parse_unix_domain_url).
func unixAddr(d *conf.Directive) (listenAddr, error) {
	path := d.Args[0][len(unixPrefix):]
	switch {
	case path == "":
		return listenAddr{}, d.Errorf("no path in the unix domain socket in \"%s\" of the \"listen\" directive", d.Args[0])
	case len(path) > maxUnixPath:
		return listenAddr{}, d.Errorf("too long path in the unix domain socket in \"%s\" of the \"listen\" directive", d.Args[0])
	}
	return listenAddr{path: path}, nil
}
