package engine

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
)

// accessRule is one allow or deny.
type accessRule struct {
	allow   bool
	network netip.Prefix // of no bits: all
	all     bool
}

// access compiles "allow|deny address|CIDR|all" (ngx_http_access_module.c). One on an inner
// level drops all of the levels around.
func access(_ *compiler, l *level, d *conf.Directive) error {
	if l.first("access") {
		l.access = nil
	}
	rule := accessRule{allow: d.Name == "allow"}
	switch arg := d.Args[0]; arg {
	case "all":
		rule.all = true
	case "unix:":
		return nil // there are no such clients
	default:
		var ok bool
		if rule.network, ok = network(arg); !ok {
			return d.Errorf("invalid parameter \"%s\"", arg)
		}
	}
	l.access = append(l.access, rule)
	return nil
}

// network reads an address or a network.
func network(s string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err == nil
}

// satisfy compiles "satisfy all|any".
func satisfy(_ *compiler, l *level, d *conf.Directive) error {
	switch d.Args[0] {
	case "all", "any":
		l.satisfyAny = d.Args[0] == "any"
		return nil
	}
	return d.Errorf("invalid value \"%s\"", d.Args[0])
}

// verdict is what one of the access phase's checks says.
type verdict int

const (
	declined verdict = iota // it has nothing to say
	granted
	refused
)

// mayEnter runs the access phase: 0 lets the request in.
func (x *exchange) mayEnter(w http.ResponseWriter) int {
	byAddress := x.byAddress()
	if byAddress == granted && x.level.satisfyAny {
		return 0
	}
	if byAddress == refused && !x.level.satisfyAny {
		return http.StatusForbidden
	}
	switch byPassword, status, realm := x.byPassword(); {
	case byPassword == refused && status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="`+strings.ReplaceAll(realm, `"`, `\"`)+`"`)
		return status
	case byPassword == refused:
		return status
	case byPassword == granted || byAddress != refused:
		return 0
	}
	return http.StatusForbidden
}

// byAddress looks at allow and deny.
func (x *exchange) byAddress() verdict {
	if len(x.level.access) == 0 {
		return declined
	}
	at, err := netip.ParseAddrPort(x.HTTP.RemoteAddr)
	addr := at.Addr().Unmap().WithZone("")
	for _, rule := range x.level.access {
		if rule.all || err == nil && rule.network.Contains(addr) {
			if rule.allow {
				return granted
			}
			x.logError("access forbidden by rule")
			return refused
		}
	}
	return declined
}
