package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/ocsp"
)

// ocspRule is how a level checks whether certificates of clients are revoked.
type ocspRule struct {
	on, leaf  bool
	at        *conf.Directive
	responder string
	cache     *ocsp.Cache
}

func (r *ocspRule) checker() *ocsp.Checker {
	return &ocsp.Checker{Responder: r.responder, Leaf: r.leaf, Cache: r.cache}
}

// sslOCSP compiles "ssl_ocsp on|off|leaf".
func sslOCSP(_ *compiler, l *level, d *conf.Directive) error {
	r := &sslSlot.edit(l).client.ocsp
	switch d.Args[0] {
	case "on", "off", "leaf":
		r.on, r.leaf, r.at = d.Args[0] != "off", d.Args[0] == "leaf", d
		return nil
	}
	return d.Errorf("invalid value \"%s\"", d.Args[0])
}

// sslOCSPResponder compiles "ssl_ocsp_responder url".
func sslOCSPResponder(_ *compiler, l *level, d *conf.Directive) error {
	if !strings.HasPrefix(d.Args[0], "http://") {
		return d.Errorf("invalid URL prefix in OCSP responder \"%s\"", d.Args[0])
	}
	sslSlot.edit(l).client.ocsp.responder = d.Args[0]
	return nil
}

// cachedStatusSize is about the memory of one entry in nginx's cache.
const cachedStatusSize = 128

// sslOCSPCache compiles "ssl_ocsp_cache off|shared:name:size". A zone of several levels is one cache.
func sslOCSPCache(c *compiler, l *level, d *conf.Directive) error {
	r := &sslSlot.edit(l).client.ocsp
	if d.Args[0] == "off" {
		r.cache = nil
		return nil
	}
	zone, shared := strings.CutPrefix(d.Args[0], "shared:")
	name, size, ok := zoneParameter(zone)
	if !shared || !ok {
		return d.Errorf("invalid OCSP cache \"%s\"", d.Args[0])
	}
	if size < 8<<12 {
		return d.Errorf("OCSP cache \"%s\" is too small", d.Args[0])
	}
	r.cache = c.engine.shared.statusCacheOf(name, int(size/cachedStatusSize))
	return nil
}

// statusCacheID identifies a cache over a reload.
type statusCacheID struct {
	zone string
	size int
}

// statusCacheOf returns the cache of a zone, that of the configuration before if it had it.
func (s *shared) statusCacheOf(zone string, size int) *ocsp.Cache {
	id := statusCacheID{zone, size}
	if s.statuses[id] == nil {
		cache := s.statusesBefore[id]
		if cache == nil {
			cache = ocsp.NewCache(size)
		}
		s.statuses[id] = cache
	}
	return s.statuses[id]
}
