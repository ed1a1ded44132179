package engine

import (
	"net/http"
	"net/netip"

	"github.com/culvert-go/culvert/nginx/conf"
)

// accessRule is one allow or deny.
type accessRule struct {
	allow   bool
	network netip.Prefix // with zero bits: every address
	all     bool
	unix    bool
}

// access compiles "allow|deny address|CIDR|unix:|all" (ngx_http_access_module.c). Rules on an
// inner level replace those of the outer levels.
func access(_ *compiler, l *level, d *conf.Directive) error {
	if l.first("access") {
		l.access = nil
	}
	rule := accessRule{allow: d.Name == "allow"}
	switch arg := d.Args[0]; arg {
	case "all":
		rule.all = true
	case "unix:":
		rule.unix = true
	default:
		var ok bool
		if rule.network, ok = network(arg); !ok {
			return d.Errorf("invalid parameter \"%s\"", arg)
		}
	}
	l.access = append(l.access, rule)
	return nil
}

// network parses an address or a network.
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

// verdict is the result of one check of the access phase.
type verdict int

const (
	declined verdict = iota // the check does not apply
	granted
	refused
)

// accessPhase runs the access phase and returns 0 if the request is allowed
// (ngx_http_core_access_phase).
func (x *exchange) accessPhase(w http.ResponseWriter) int {
	code := 0
	for _, check := range []func(http.ResponseWriter) (verdict, int){x.byAddress, x.byPassword, x.bySubrequest} {
		v, status := check(w)
		switch {
		case v == granted && x.level.satisfyAny:
			w.Header().Del("Www-Authenticate")
			return 0
		case v != refused:
		case !x.level.satisfyAny, status != http.StatusForbidden && status != http.StatusUnauthorized:
			return status
		case code != http.StatusUnauthorized:
			code = status
		}
	}
	return code
}

// byAddress applies allow and deny.
func (x *exchange) byAddress(http.ResponseWriter) (verdict, int) {
	if len(x.level.access) == 0 {
		return declined, 0
	}
	at, err := netip.ParseAddrPort(x.HTTP.RemoteAddr)
	addr := at.Addr().Unmap().WithZone("")
	for _, rule := range x.level.access {
		if rule.all || rule.unix && x.overUnix() || err == nil && rule.network.Contains(addr) {
			if rule.allow {
				return granted, 0
			}
			x.logError("access forbidden by rule")
			return refused, http.StatusForbidden
		}
	}
	return declined, 0
}
