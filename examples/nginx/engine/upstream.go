package engine

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
	"github.com/culvert-go/culvert/upstream"
)

// group is an upstream block, or the host of a proxy_pass that names none.
type group struct {
	name     string
	balance  upstream.Balance
	targets  []upstream.Target
	chosen   string // the directive that says so
	noBackup bool
	schemes  map[string]*upstream.Group // by http and https, made when they are needed
}

// declareUpstreams compiles the upstream blocks.
func (c *compiler) declareUpstreams(list []*conf.Directive) error {
	for _, d := range list {
		if d.Name != "upstream" {
			continue
		}
		name := d.Args[0]
		if _, ok := c.groups[name]; ok {
			return d.Errorf("duplicate upstream \"%s\"", name)
		}
		g := &group{name: name, balance: upstream.RoundRobin(), schemes: map[string]*upstream.Group{}}
		if err := c.fill(g, d); err != nil {
			return err
		}
		if _, err := c.engine.upstream(g, "http"); err != nil {
			return d.Errorf("no servers in upstream \"%s\"", name) // nothing but backups
		}
		c.groups[name] = g
	}
	return nil
}

// fill compiles the body of an upstream block.
func (c *compiler) fill(g *group, d *conf.Directive) error {
	servers := 0
	for _, row := range d.Block {
		switch row.Name {
		case "hash", "ip_hash", "least_conn", "random":
			if err := c.balance(g, row); err != nil {
				return err
			}
		case "server":
			targets, err := upstreamServer(row)
			if err != nil {
				return err
			}
			g.targets = append(g.targets, targets...)
			servers++
			if targets[0].Backup && g.noBackup {
				return row.Errorf("balancing method does not support parameter \"backup\"")
			}
		}
	}
	if servers == 0 {
		return d.Errorf("no servers are inside upstream")
	}
	return nil
}

// upstreamServer compiles "server address [parameters]": one target for each
// address of the name.
func upstreamServer(d *conf.Directive) ([]upstream.Target, error) {
	var t upstream.Target
	for _, p := range d.Args[1:] {
		if err := targetParameter(&t, d, p); err != nil {
			return nil, err
		}
	}
	return resolve(t, d, d.Args[0], "80")
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
		t.FailTimeout = timeout
	case key == "max_conns" && value == "0":
	case key == "max_conns", p == "resolve", key == "service", key == "slow_start", key == "route", p == "drain":
		return d.Errorf("parameter \"%s\" of \"server\" is not supported by culvert yet", p)
	default:
		return d.Errorf("invalid parameter \"%s\"", p)
	}
	return nil
}

// resolve makes a target like t for each address of a host, at load as nginx
// does.
func resolve(t upstream.Target, at *conf.Directive, address, standardPort string) ([]upstream.Target, error) {
	host, port, err := hostPort(at, address, standardPort)
	if err != nil {
		return nil, err
	}
	ips, err := lookup(host)
	if err != nil {
		return nil, at.Errorf("host not found in upstream \"%s\"", address)
	}
	var targets []upstream.Target
	for _, ip := range ips {
		t.Addr = net.JoinHostPort(ip, port)
		targets = append(targets, t)
	}
	return targets, nil
}

// hostPort cuts an address of an upstream.
func hostPort(at *conf.Directive, address, standardPort string) (host, port string, err error) {
	if strings.HasPrefix(address, "unix:") {
		return "", "", at.Errorf("unix socket \"%s\" is not supported by culvert yet", address)
	}
	host, port = splitPort(address)
	if port == "" {
		port = standardPort
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

// splitPort cuts the port off; "" if there is none.
func splitPort(address string) (host, port string) {
	i := strings.LastIndexByte(address, ':')
	if i < 0 || strings.HasSuffix(address, "]") {
		return address, ""
	}
	return address[:i], address[i+1:]
}

// lookup returns the addresses of a host: IPv4 first, as nginx has them.
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

// upstream returns the group as the proxy takes it, for a scheme.
func (e *Engine) upstream(g *group, scheme string) (*upstream.Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if u, ok := g.schemes[scheme]; ok {
		return u, nil
	}
	o := upstream.Options{Name: g.name, Scheme: scheme, Balance: g.balance}
	if scheme == "https" {
		o.TLSConfig = upstreamTLS()
	}
	u, err := upstream.New(o, g.targets...)
	if err != nil {
		return nil, err
	}
	g.schemes[scheme] = u
	return u, nil
}

// upstreamTLS is nginx's default for upstreams: encrypted, and not verified
// (proxy_ssl_verify off).
func upstreamTLS() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
