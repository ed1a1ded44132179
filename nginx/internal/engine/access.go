package engine

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// accessModule allows and denies addresses (ngx_http_access_module.c).
var accessModule = module{
	directives: []directive{
		{name: "allow", repeatable: true, compile: access},
		{name: "deny", repeatable: true, compile: access},
		{name: "auth_delay", compile: setDuration(accessSlot, func(s *accessSettings) *time.Duration { return &s.delay })},
		{name: "satisfy", compile: setWord(accessSlot, func(s *accessSettings) *bool { return &s.any }, map[string]bool{"all": false, "any": true})},
	},
	active: func(l *level) bool { return len(accessSlot.of(l).rules) > 0 },
	hooks:  hooks{access: byAddress},
}

// accessSettings are allow, deny, satisfy and auth_delay.
type accessSettings struct {
	rules []accessRule
	any   bool          // "satisfy any": one check that grants access is enough
	delay time.Duration // of a 401
}

var accessSlot = newSlot(accessSettings{})

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
	s := accessSlot.edit(l)
	if l.first("access") {
		s.rules = nil
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
	s.rules = append(s.rules, rule)
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

// verdict is the result of one check of the access phase.
type verdict int

const (
	declined verdict = iota // the check does not apply
	granted
	refused
)

// byAddress applies allow and deny.
func byAddress(x *exchange, _ http.ResponseWriter) (verdict, int) {
	at, _ := netip.ParseAddrPort(x.HTTP.RemoteAddr)
	v := accessSlot.of(x.level).check(at.Addr(), overUnix(x))
	if v == refused {
		x.logError("access forbidden by rule")
		return v, http.StatusForbidden
	}
	return v, 0
}

// check applies the rules to a client's address, which is not valid over a unix socket.
func (s *accessSettings) check(addr netip.Addr, unix bool) verdict {
	addr = addr.Unmap().WithZone("")
	for _, rule := range s.rules {
		if !rule.all && !(rule.unix && unix) && !(addr.IsValid() && rule.network.Contains(addr)) {
			continue
		}
		if rule.allow {
			return granted
		}
		return refused
	}
	return declined
}
