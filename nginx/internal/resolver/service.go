package resolver

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// service is an SRV record.
type service struct {
	target   string
	port     uint16
	priority int
	weight   int // at least 1
}

func newService(r dnsmessage.SRVResource) service {
	return service{nameOf(r.Target), r.Port, int(r.Priority), max(int(r.Weight), 1)}
}

func sortServices(list []service) {
	slices.SortStableFunc(list, func(a, b service) int { return cmp.Compare(a.priority, b.priority) })
}

// maxTargets bounds the names of a service that are looked up at a time.
const maxTargets = 16

// ServiceAddr is one address of a service.
type ServiceAddr struct {
	netip.AddrPort
	Name     string // the target of the SRV record
	Priority int    // the least is the best (RFC 2782)
	Weight   int    // at least 1
}

// Service is the result of LookupService.
type Service struct {
	List   []ServiceAddr // by priority; those of a priority begin at a random one, by their weights
	Valid  time.Time     // until when the Resolver keeps them
	Failed []error       // of targets that have no addresses
}

// LookupService looks up the SRV records of a service of a name, and the addresses of their targets. The service "http" is
// "_http._tcp"; one with a dot is used as it is. It waits as long as ctx allows, and returns what is known then. The error is
// like that of LookupIP; the targets that have failed are in Failed even so.
func (r *Resolver) LookupService(ctx context.Context, name, service string) (Service, error) {
	e, err := r.resolve(ctx, key{name: canonical(serviceName(name, service)), service: true})
	if err != nil {
		return Service{}, err
	}
	found := r.targets(ctx, e.services)
	s := Service{Valid: e.valid}
	for i, t := range found {
		if t.err != nil {
			s.Failed = append(s.Failed, fmt.Errorf("%s could not be resolved (%w)", e.services[i].target, t.err))
		} else if t.valid.Before(s.Valid) {
			s.Valid = t.valid
		}
	}
	if len(s.Failed) == len(found) {
		return s, worst(found)
	}
	for from := 0; from < len(found); {
		to := from
		for to < len(found) && e.services[to].priority == e.services[from].priority {
			to++
		}
		s.List = append(s.List, rotated(e.services[from:to], found[from:to])...)
		from = to
	}
	return s, nil
}

func serviceName(name, service string) string {
	if !strings.Contains(service, ".") {
		service = "_" + service + "._tcp"
	}
	return service + "." + name
}

// target is what is known of the target of a record.
type target struct {
	addrs []netip.Addr
	valid time.Time
	err   error
}

// targets looks up the targets of records.
func (r *Resolver) targets(ctx context.Context, list []service) []target {
	found := make([]target, len(list))
	var running sync.WaitGroup
	places := make(chan struct{}, maxTargets)
	for i, s := range list {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			a, err := r.LookupIP(ctx, s.target)
			found[i] = target{a.List, a.Valid, err}
		})
	}
	running.Wait()
	return found
}

// worst returns the error of a service none of whose targets has an address: that there is none, if that is known of one.
func worst(found []target) error {
	for _, t := range found {
		if e, ok := t.err.(*Error); ok && e.Code == NotFound {
			return e
		}
	}
	return found[0].err
}

// rotated returns the addresses of records of one priority, beginning at a random record by weight.
func rotated(list []service, found []target) (all []ServiceAddr) {
	sum := 0
	for i, s := range list {
		sum += s.weight * len(found[i].addrs)
	}
	if sum == 0 {
		return nil
	}
	first, at := 0, rand.IntN(sum)
	for at >= list[first].weight*len(found[first].addrs) {
		at -= list[first].weight * len(found[first].addrs)
		first++
	}
	for n := range list {
		i := (first + n) % len(list)
		for _, ip := range found[i].addrs {
			all = append(all, ServiceAddr{netip.AddrPortFrom(ip, list[i].port), list[i].target, list[i].priority, list[i].weight})
		}
	}
	return all
}
