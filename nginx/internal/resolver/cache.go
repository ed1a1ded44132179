package resolver

import (
	"container/list"
	"net/netip"
	"time"
)

// maxKnown bounds the number of entries that are kept: clients may choose the names.
const maxKnown = 4096

// entry is what is known of a key. It has addresses, services or an alias.
type entry struct {
	addrs    []netip.Addr
	services []service // by priority
	alias    string    // where a CNAME leads
	valid    time.Time
}

// cache keeps entries until they expire, or until more recent ones need their place.
type cache struct {
	byKey map[key]*list.Element
	used  *list.List // of *kept, the last used in front
}

type kept struct {
	key key
	entry
}

func newCache() cache { return cache{byKey: map[key]*list.Element{}, used: list.New()} }

// get returns the entry of a key unless it has expired.
func (c *cache) get(k key, now time.Time) (entry, bool) {
	at := c.byKey[k]
	if at == nil {
		return entry{}, false
	}
	e := at.Value.(*kept).entry
	if !now.Before(e.valid) {
		c.remove(at)
		return entry{}, false
	}
	c.used.MoveToFront(at)
	return e, true
}

// put keeps an entry.
func (c *cache) put(k key, e entry) {
	if at := c.byKey[k]; at != nil {
		c.remove(at)
	}
	if c.used.Len() >= maxKnown {
		c.remove(c.used.Back())
	}
	c.byKey[k] = c.used.PushFront(&kept{k, e})
}

func (c *cache) remove(at *list.Element) {
	delete(c.byKey, at.Value.(*kept).key)
	c.used.Remove(at)
}
