package engine

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/upstream"
)

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// groupServer compiles "server address [parameters]": one target for each address of the
// name.
func groupServer(c *compiler, g *group, d *conf.Directive) error {
	var t upstream.Target
	for _, p := range d.Args[1:] {
		if c.stream && (p == "drain" || strings.HasPrefix(p, "route=")) { // which are about sticky
			return d.Errorf("invalid parameter \"%s\"", p)
		}
		if err := targetParameter(&t, d, p); err != nil {
			return err
		}
	}
	if t.Backup && g.noBackup {
		return d.Errorf("balancing method does not support parameter \"backup\"")
	}
	resolved, err := resolveParameters(d)
	if err != nil {
		return err
	}
	if resolved != nil {
		resolved.target = t
		g.resolve = append(g.resolve, *resolved)
		return nil
	}
	port := "80"
	if c.stream {
		port = "" // it must be given
	}
	targets, err := resolve(t, d, d.Args[0], port)
	g.targets = append(g.targets, targets...)
	return err
}

// resolveParameters checks the parameters "resolve" and "service=". It returns nil if the name is to be looked up at load, or is an
// address.
func resolveParameters(d *conf.Directive) (*resolvedServer, error) {
	s := &resolvedServer{at: d}
	for _, p := range d.Args[1:] {
		if service, ok := strings.CutPrefix(p, "service="); ok {
			if s.service = service; service == "" {
				return nil, d.Errorf("service is empty")
			}
		}
	}
	if !slices.Contains(d.Args[1:], "resolve") {
		if s.service != "" {
			return nil, d.Errorf("service upstream \"%s\" requires \"resolve\" parameter", d.Args[0])
		}
		return nil, nil
	}
	_, given := splitPort(d.Args[0])
	switch {
	case s.service != "" && given != "" && !isAddress(d.Args[0]):
		return nil, d.Errorf("service upstream \"%s\" may not have port", d.Args[0])
	case s.service != "" && isAddress(d.Args[0]):
		return nil, d.Errorf("service upstream \"%s\" requires domain name", d.Args[0])
	case isAddress(d.Args[0]):
		return nil, nil
	}
	var err error
	s.host, s.port, err = hostPort(d, d.Args[0], "80")
	return s, err
}

func isAddress(address string) bool {
	host, _ := splitPort(address)
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.HasPrefix(address, unixPrefix)
}

func targetParameter(t *upstream.Target, d *conf.Directive, p string) error {
	key, value, _ := strings.Cut(p, "=")
	n, isNumber := conf.Number(value)
	switch {
	case p == "backup":
		t.Backup = true
	case p == "down":
		t.Down = true
	case key == "weight" && isNumber && n > 0:
		t.Weight = n
	case key == "max_fails" && isNumber:
		t.MaxFails = n
		if n == 0 {
			t.MaxFails = -1
		}
	case key == "fail_timeout":
		timeout, ok := conf.Duration(value)
		if !ok {
			return d.Errorf("invalid parameter \"%s\"", p)
		}
		t.FailTimeout = max(timeout, time.Nanosecond) // 0 would be the default
	case key == "max_conns" && isNumber:
		t.MaxConns = n
	case p == "resolve", key == "service": // resolveParameters
	case p == "route=":
		return d.Errorf("route is empty")
	case key == "route" && len(value) > 32:
		return d.Errorf("route is longer than 32")
	case key == "route" && value != "":
		t.Value = value
	case p == "drain":
		t.Draining = true
	case key == "slow_start":
		return d.Errorf("parameter \"%s\" of \"server\" is not supported by culvert yet", p)
	default:
		return d.Errorf("invalid parameter \"%s\"", p)
	}
	return nil
}

// resolve returns a target like t for each address of a host, which it looks up at load as nginx
// does.
func resolve(t upstream.Target, at *conf.Directive, address, standardPort string) ([]upstream.Target, error) {
	host, port, err := hostPort(at, address, standardPort)
	if err != nil {
		return nil, err
	}
	if port == "" {
		t.Addr = host
		return []upstream.Target{t}, nil
	}
	ips, err := lookup(host)
	if err != nil {
		if strings.HasSuffix(at.Name, "_pass") {
			address = host
		}
		return nil, at.Errorf("host not found in upstream \"%s\"", address)
	}
	var targets []upstream.Target
	for _, ip := range ips {
		t.Addr = net.JoinHostPort(ip, port)
		targets = append(targets, t)
	}
	return targets, nil
}

// hostPort splits an address of an upstream.
func hostPort(at *conf.Directive, address, standardPort string) (host, port string, err error) {
	if strings.HasPrefix(address, unixPrefix) {
		return address, "", nil
	}
	host, port = splitPort(address)
	if port == "" {
		port = standardPort
	}
	if port == "" {
		return "", "", at.Errorf("no port in upstream \"%s\"", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strings.HasSuffix(address, ":") {
		return "", "", at.Errorf("invalid port in upstream \"%s\"", address)
	}
	if host == "" {
		return "", "", at.Errorf("no host in upstream \"%s\"", address)
	}
	if strings.Contains(host, "/") {
		return "", "", at.Errorf("invalid host in upstream \"%s\"", address)
	}
	return host, port, nil
}

// splitPort splits the port off; "" if there is none.
func splitPort(address string) (host, port string) {
	i := strings.LastIndexByte(address, ':')
	if i < 0 || strings.HasSuffix(address, "]") {
		return address, ""
	}
	return address[:i], address[i+1:]
}

// lookup returns the addresses of a host: IPv4 first, as in nginx.
func lookup(host string) ([]string, error) {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []string{ip.String()}, nil
	}
	found, err := net.LookupIP(host)
	if err != nil {
		return nil, err
	}
	var v4, v6 []string
	for _, ip := range found {
		if ip.To4() != nil {
			v4 = append(v4, ip.String())
		} else {
			v6 = append(v6, ip.String())
		}
	}
	return append(v4, v6...), nil
}
