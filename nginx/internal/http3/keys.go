package http3

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"

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
