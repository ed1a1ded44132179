// Package tickets keeps the sessions of TLS servers in encrypted tickets, which clients hold: they are bound to a server, and have
// an age. It has nginx's names of keys and nginx's rotation.
package tickets

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"sync"
	"time"
)

// nameSize is the length of a key's name, with which each of its tickets begins.
const nameSize = 16

// key encrypts tickets.
type key struct {
	name  [nameSize]byte
	crypt *tls.Config // whose only key it is
	born  time.Time
}

func newKey(name []byte, secret [32]byte) key {
	k := key{crypt: &tls.Config{}}
	copy(k.name[:], name)
	k.crypt.SetSessionTicketKeys([][32]byte{secret})
	return k
}

// Keys encrypt tickets, and know those that they have encrypted. They are safe for concurrent use by multiple goroutines.
type Keys struct {
	period time.Duration // 0: they are files

	mu   sync.Mutex
	list []key // the first encrypts
}

// Rotating returns random keys. Each encrypts for a period, and decrypts for a further one.
func Rotating(period time.Duration) *Keys { return &Keys{period: max(period, time.Second)} }

// ErrSize is what is wrong with a file of a key.
var ErrSize = errors.New("must be 48 or 80 bytes")

// FromFiles returns the keys of files as nginx has them: 16 bytes of a name, and a secret of 32 or 64. The first one encrypts. It
// returns ErrSize and the index of a file that has another size.
func FromFiles(files [][]byte) (*Keys, int, error) {
	k := &Keys{}
	for i, b := range files {
		if len(b) != 48 && len(b) != 80 {
			return nil, i, ErrSize
		}
		k.list = append(k.list, newKey(b[:nameSize], sha256.Sum256(b[nameSize:])))
	}
	return k, 0, nil
}

// current returns the keys that are valid, of which the first encrypts.
func (k *Keys) current() []key {
	if k.period == 0 {
		return k.list
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for n := len(k.list); n > 0 && now.Sub(k.list[n-1].born) >= 2*k.period; n-- {
		k.list = k.list[: n-1 : n-1] // a caller may hold the list
	}
	if len(k.list) == 0 || now.Sub(k.list[0].born) >= k.period {
		k.list = append([]key{randomKey(now)}, k.list...)
	}
	return k.list
}

func randomKey(now time.Time) key {
	var name [nameSize]byte
	var secret [32]byte
	_, _ = rand.Read(name[:]) // never fails
	_, _ = rand.Read(secret[:])
	k := newKey(name[:], secret)
	k.born = now
	return k
}

func (k *Keys) encrypt(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
	first := k.current()[0]
	ticket, err := first.crypt.EncryptTicket(cs, s)
	return append(first.name[:], ticket...), err
}

// decrypt returns nil for a ticket that is not one of these keys.
func (k *Keys) decrypt(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
	if len(ticket) < nameSize {
		return nil, nil
	}
	for _, one := range k.current() {
		if string(one.name[:]) != string(ticket[:nameSize]) {
			continue
		}
		if s, err := one.crypt.DecryptTicket(ticket[nameSize:], cs); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}
