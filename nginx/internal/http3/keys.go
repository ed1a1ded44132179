package http3

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// tokenKeys returns the keys by which quic-go makes tokens of clients' addresses and those that reset connections. They
// depend on the host key, so that processes that share it know each other's. Without one they are random.
func tokenKeys(host []byte) (address quic.TokenGeneratorKey, reset quic.StatelessResetKey) {
	if len(host) == 0 {
		host = make([]byte, 32)
		_, _ = rand.Read(host) // which never fails
	}
	derive := func(to []byte, purpose string) {
		key, err := hkdf.Key(sha256.New, host, nil, "culvert quic "+purpose, len(to))
		if err != nil {
			panic(err) // the length is too large
		}
		copy(to, key)
	}
	derive(address[:], "address validation")
	derive(reset[:], "stateless reset")
	return address, reset
}

const (
	ticketLife = 24 * time.Hour // of a key for new tickets
	ticketKeys = 3              // which are accepted
)

// tickets are the keys of the sessions that clients resume. crypto/tls would make them for each configuration, and quic-go
// gives it a copy of the configuration for each connection. The zero value is ready for use.
type tickets struct {
	mu   sync.Mutex
	keys [][32]byte // the newest first
	born time.Time
}

// set sets the keys of a configuration.
func (t *tickets) set(config *tls.Config, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.keys) == 0 || now.Sub(t.born) >= ticketLife {
		var key [32]byte
		_, _ = rand.Read(key[:])
		t.keys = append([][32]byte{key}, t.keys[:min(len(t.keys), ticketKeys-1)]...)
		t.born = now
	}
	config.SetSessionTicketKeys(t.keys)
}
