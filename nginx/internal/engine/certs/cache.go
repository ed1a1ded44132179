package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"os"
	"strings"
	"sync"
	"time"
)

// Loaded is a certificate with its key.
type Loaded struct {
	tls.Certificate
	// ID is the certificates' own: an equal one is of the same certificates.
	ID [sha256.Size]byte
}

func newLoaded(pair tls.Certificate) *Loaded {
	return &Loaded{pair, sha256.Sum256(bytes.Join(pair.Certificate, nil))}
}

// Cache keeps certificates whose names have variables, and their keys but for those that are encrypted. It is safe for concurrent use
// by multiple goroutines.
type Cache struct {
	max             int
	inactive, valid time.Duration
	stat            func(name string) (os.FileInfo, error) // os.Stat, but in tests

	mu   sync.Mutex // is not held while files are looked at: other handshakes would wait for a slow file system
	list map[pairName]*kept
}

type pairName struct{ cert, key string }

type kept struct {
	*Loaded
	stamps  [2]stamp
	checked time.Time
	used    time.Time
}

// stamp tells versions of a file apart.
type stamp struct {
	info os.FileInfo // nil for what is no file
}

// NewCache returns a Cache of that many certificates. Of more, the one that was not used for the longest time is forgotten, as are those
// that were not used for the time inactive; 0 is no bound. For the time valid, a certificate is used regardless of changes of
// its files; behind that, as long as they are the same.
func NewCache(max int, inactive, valid time.Duration) *Cache {
	return &Cache{max: max, inactive: inactive, valid: valid, stat: os.Stat, list: map[pairName]*kept{}}
}

// Load returns what load reads for two names of files, or texts behind "data:", if it is not in the cache. encrypted reports
// whether the key is.
func (c *Cache) Load(cert, key string, load func() (pair tls.Certificate, encrypted bool, err error)) (*Loaded, error) {
	name, now := pairName{cert, key}, time.Now()
	if found := c.find(name, now); found != nil {
		return found, nil
	}
	stamps, known := c.stampsOf(name) // before the files are read
	pair, encrypted, err := load()
	if err != nil {
		return nil, err
	}
	loaded := newLoaded(pair)
	if known && !encrypted {
		c.add(name, &kept{loaded, stamps, now, now}, now)
	}
	return loaded, nil
}

// find returns what is kept under a name, nil if there is nothing, or not any more.
func (c *Cache) find(name pairName, now time.Time) *Loaded {
	entry, checked := c.use(name, now)
	if entry == nil || checked {
		return entry.loaded()
	}
	stamps, known := c.stampsOf(name)
	same := known && stamps[0].same(entry.stamps[0]) && stamps[1].same(entry.stamps[1])
	c.mu.Lock()
	defer c.mu.Unlock()
	switch current := c.list[name] == entry; { // else another handshake has seen to it
	case !same && current:
		delete(c.list, name)
		return nil
	case !same:
		return nil
	}
	entry.checked = now
	return entry.Loaded
}

// use returns what is kept under a name, nil if there is nothing, and whether its files need not be looked at.
func (c *Cache) use(name pairName, now time.Time) (entry *kept, checked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry = c.list[name]; entry == nil || c.expired(entry, now) {
		return nil, false
	}
	entry.used = now
	return entry, now.Sub(entry.checked) <= c.valid
}

func (k *kept) loaded() *Loaded {
	if k == nil {
		return nil
	}
	return k.Loaded
}

func (c *Cache) expired(entry *kept, now time.Time) bool {
	return c.inactive > 0 && now.Sub(entry.used) > c.inactive
}

// add keeps a certificate.
func (c *Cache) add(name pairName, entry *kept, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest pairName
	for other, e := range c.list {
		if c.expired(e, now) {
			delete(c.list, other)
		} else if o := c.list[oldest]; o == nil || e.used.Before(o.used) {
			oldest = other
		}
	}
	if len(c.list) >= c.max && c.list[name] == nil {
		delete(c.list, oldest)
	}
	c.list[name] = entry
}

// stampsOf returns the stamps of the files of a pair, and whether both are there.
func (c *Cache) stampsOf(name pairName) (stamps [2]stamp, known bool) {
	for i, file := range []string{name.cert, name.key} {
		if strings.HasPrefix(file, "data:") {
			continue
		}
		info, err := c.stat(file)
		if err != nil {
			return stamps, false
		}
		stamps[i] = stamp{info}
	}
	return stamps, true
}

func (s stamp) same(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return os.SameFile(s.info, other.info) && s.info.ModTime().Equal(other.info.ModTime()) && s.info.Size() == other.info.Size()
}

// Encrypted reports whether a text in PEM has an encrypted key.
func Encrypted(key []byte) bool { return bytes.Contains(key, []byte("ENCRYPTED")) }
