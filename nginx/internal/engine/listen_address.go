package engine

import (
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// listenAddr is what a listen directive names: an address and a port, or if there is a path
// a unix socket.
type listenAddr struct {
	netip.AddrPort
	path string
}

// maxUnixPath is what a unix socket's address has room for on Linux, behind its end.
const maxUnixPath = 107

// String writes it as nginx does.
func (a listenAddr) String() string {
	if a.path != "" {
		return unixPrefix + a.path
	}
	return a.AddrPort.String()
}

// forNet is what net.Listen takes.
func (a listenAddr) forNet() (network, address string) {
	switch {
	case strings.HasPrefix(a.path, "@"):
		return "unix", "./" + a.path // to Go, "@" begins what is no file
	case a.path != "":
		return "unix", a.path
	case a.Addr().Is6():
		return "tcp6", a.AddrPort.String()
	}
	return "tcp4", a.AddrPort.String()
}

// isUnix says whether an address begins with "unix:", in any case.
func isUnix(text string) bool {
	return len(text) >= len(unixPrefix) && strings.EqualFold(text[:len(unixPrefix)], unixPrefix)
}

// unixAddr reads the address of a unix socket (ngx_parse_unix_domain_url).
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
