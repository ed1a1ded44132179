package engine

import (
	"github.com/culvert-go/culvert/nginx/internal/acme"
	"github.com/culvert-go/culvert/nginx/internal/engine/limit"
	"github.com/culvert-go/culvert/nginx/internal/engine/ocsp"
	"github.com/culvert-go/culvert/nginx/internal/engine/tickets"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// shared is the state that a configuration hands over to the one that replaces it: it belongs to
// the process and not to the file.
type shared struct {
	requestZones map[string]*requestZone
	connZones    map[string]*zone[*limit.Running]
	streamZones  map[string]*zone[*limit.Running] // those of stream
	sessions     map[string]*sessions             // of sticky, by zone
	found        map[string]*foundServer          // of servers with "resolve", by upstream, host and service
	counts       *counts
	conns        *vars.Conns
	acme         *acme.Store

	// Keys of TLS sessions and responses about certificates; those "Before" are the previous configuration's.
	ticketKeys, ticketKeysBefore map[ticketKeysID]*tickets.Keys
	statuses, statusesBefore     map[statusCacheID]*ocsp.Cache
}

// sharedFrom returns a configuration's own shared state. Its zones are taken over one by one, if
// they are the same; requests of the previous configuration are still counted.
func sharedFrom(before shared) shared {
	s := shared{
		requestZones: map[string]*requestZone{}, connZones: map[string]*zone[*limit.Running]{}, sessions: map[string]*sessions{},
		found:       map[string]*foundServer{},
		streamZones: map[string]*zone[*limit.Running]{},
		counts:      before.counts, conns: before.conns, acme: before.acme,
		ticketKeys: map[ticketKeysID]*tickets.Keys{}, ticketKeysBefore: before.ticketKeys,
		statuses: map[statusCacheID]*ocsp.Cache{}, statusesBefore: before.statuses,
	}
	if s.counts == nil {
		s.counts, s.conns, s.acme = newCounts(), new(vars.Conns), new(acme.Store)
	}
	return s
}

// connZonesOf returns the zones of limit_conn of stream, or of http.
func (s *shared) connZonesOf(stream bool) map[string]*zone[*limit.Running] {
	if stream {
		return s.streamZones
	}
	return s.connZones
}
