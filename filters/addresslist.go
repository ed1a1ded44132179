package filters

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/record"
)

// AddressListOptions configures AddressList.
type AddressListOptions struct {
	// Rules are in order: the first that has a network with the client's address decides. Required. If none
	// has, the client is refused if one of the rules allows anything, and served if all of them deny.
	Rules []AddressRule
}

// AddressRule allows or denies networks.
type AddressRule struct {
	// Allow allows the networks. Without it they are denied.
	Allow bool
	// Networks are the networks. 0.0.0.0/0 has all IPv4 addresses, ::/0 all IPv6 addresses. An IPv4 address that a
	// socket for IPv6 has accepted (::ffff:192.0.2.1) is an IPv4 address. Required.
	Networks []netip.Prefix
}

// AddressList returns a filter that serves the clients whose addresses are allowed, and refuses all others with 403. The
// address is that of ClientAddr: place the filter inside of RealIP if there are proxies in front, since it would judge
// their addresses. A client whose address is not known is refused, as those of unix sockets are. A culvert.Error of the kind
// Forbidden is the reason in the logs.
//
// Security: an address is no proof of who a client is. Networks that others share, those of a cloud for instance, are not
// trustworthy because one of their addresses is.
//
// AddressList returns an error if there are no rules, if a rule has no networks, or if a network is not valid or is one of
// IPv4-mapped IPv6 addresses, in which no client is.
func AddressList(o AddressListOptions) (culvert.Filter, error) {
	if len(o.Rules) == 0 {
		return nil, errors.New("filters: AddressList: AddressListOptions.Rules is empty")
	}
	var l addressList
	for i, rule := range o.Rules {
		if len(rule.Networks) == 0 {
			return nil, fmt.Errorf("filters: AddressList: rule %d has no networks", i)
		}
		for _, network := range rule.Networks {
			if !network.IsValid() {
				return nil, fmt.Errorf("filters: AddressList: a network of rule %d is not valid", i)
			}
			if network.Addr().Is4In6() {
				return nil, fmt.Errorf("filters: AddressList: write the IPv4 network for %v", network)
			}
		}
		l.rules = append(l.rules, AddressRule{rule.Allow, slices.Clone(rule.Networks)})
		l.denyRest = l.denyRest || rule.Allow
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if l.allows(ClientAddr(r)) {
				next.ServeHTTP(w, r)
				return
			}
			if recorder := record.From(r.Context()); recorder != nil {
				recorder.Err = errAddressDenied
			}
			refuse(w, r, http.StatusForbidden)
		})
	}, nil
}

var errAddressDenied error = &culvert.Error{Kind: culvert.Forbidden, Err: errors.New("filters: AddressList: the client's address is not allowed")}

// addressList is the state of an AddressList.
type addressList struct {
	rules    []AddressRule
	denyRest bool // addresses that no rule has
}

func (l *addressList) allows(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	addr = addr.WithZone("") // no network has an address with a zone
	for _, rule := range l.rules {
		for _, network := range rule.Networks {
			if network.Contains(addr) {
				return rule.Allow
			}
		}
	}
	return !l.denyRest
}
