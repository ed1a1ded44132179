package filters

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxCachedFields bounds the fields of a response that is kept, in bytes.
const maxCachedFields = 8 << 10

// authKey is the digest of what distinguishes requests: credentials are not kept.
type authKey [sha256.Size]byte

// authCache keeps responses that allow requests. It is safe for concurrent use by multiple goroutines.
type authCache struct {
	max int

	mu   sync.Mutex
	of   map[authKey]*list.Element // of *cachedAuthorization
	used *list.List                // the most recently used first
}

// cachedAuthorization is a response that allows a request until a time.
type cachedAuthorization struct {
	key      authKey
	until    time.Time
	response *authorization
}

func newAuthCache(size int) *authCache {
	if size == 0 {
		size = 1024
	}
	return &authCache{max: size, of: map[authKey]*list.Element{}, used: list.New()}
}

// get returns the response of the key, nil if there is none or its time is over.
func (c *authCache) get(key authKey) *authorization {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of[key]
	if e == nil {
		return nil
	}
	kept := e.Value.(*cachedAuthorization)
	if !time.Now().Before(kept.until) {
		c.remove(e)
		return nil
	}
	c.used.MoveToFront(e)
	return kept.response
}

// put keeps a until the time, in place of the least recently used if there is no room.
func (c *authCache) put(key authKey, a *authorization, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.of[key]; e != nil {
		c.remove(e)
	}
	if c.used.Len() >= c.max {
		c.remove(c.used.Back())
	}
	c.of[key] = c.used.PushFront(&cachedAuthorization{key, until, a})
}

// remove removes e. The caller holds c.mu.
func (c *authCache) remove(e *list.Element) {
	delete(c.of, c.used.Remove(e).(*cachedAuthorization).key)
}

// lifetime returns how long a response may be kept, at most d; 0 if it may not.
func (a *authorization) lifetime(d time.Duration) time.Duration {
	if a.header["Set-Cookie"] != nil { // it is of one client
		return 0
	}
	for _, line := range a.header["Cache-Control"] {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
			switch name {
			case "no-store", "no-cache":
				return 0
			case "max-age":
				seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 32)
				if err != nil {
					return 0
				}
				d = min(d, time.Duration(seconds)*time.Second)
			}
		}
	}
	return d
}

// keepable returns what is kept of a: the fields of these names. It returns nil if they are too long.
func (a *authorization) keepable(names []string) *authorization {
	kept := &authorization{status: a.status, header: http.Header{}}
	size := 0
	for _, name := range names {
		for _, value := range a.header[name] {
			kept.header[name] = append(kept.header[name], strings.Clone(value)) // not the memory of the whole header
			size += len(name) + len(value)
		}
	}
	if size > maxCachedFields {
		return nil
	}
	return kept
}

// cacheKey returns the key of r, whose subrequest is sub. ok is false if the response is not kept.
func (f *forwardAuth) cacheKey(r, sub *http.Request) (_ authKey, ok bool) {
	if f.o.CacheKey != nil {
		key := f.o.CacheKey(r)
		return sha256.Sum256([]byte(key)), key != ""
	}
	k := keyHash{sha256.New()}
	k.add(sub.Method, sub.RequestURI, sub.Host, sub.RemoteAddr[:max(0, strings.LastIndexByte(sub.RemoteAddr, ':'))])
	for _, name := range slices.Sorted(maps.Keys(sub.Header)) {
		k.add(name)
		k.add(sub.Header[name]...)
	}
	if sub.TLS != nil {
		k.add("TLS", sub.TLS.ServerName)
		for _, certificate := range sub.TLS.PeerCertificates {
			k.add(string(certificate.Raw))
		}
	}
	return authKey(k.Sum(nil)), true
}

// keyHash is the digest of lists of values. Different lists have different digests.
type keyHash struct{ hash.Hash }

func (k keyHash) add(values ...string) {
	b := binary.AppendUvarint(nil, uint64(len(values)))
	for _, v := range values {
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	_, _ = k.Write(b)
}
