package tickets

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// Rule is what a server says of its sessions.
type Rule struct {
	Keys    *Keys
	Timeout time.Duration // of a session
	// Context identifies the server with what its handshakes verify: a session is resumed in the context that it began in.
	Context [sha256.Size]byte
}

const idSize = 32

// mark begins the entry of a session's Extra that is this package's: others may have their own.
var mark = []byte("culvert session\x00")

// Handshake is the session of one handshake. It is used by the handshake's goroutine alone.
type Handshake struct {
	rule    Rule
	context [sha256.Size]byte
	id      [idSize]byte
	known   bool // there is an id
	since   time.Time
}

// Begin lets config, which must be that of one handshake alone, keep sessions in tickets by the rule. Sessions are bound to the server
// name that the client has sent.
func (r Rule) Begin(config *tls.Config, serverName string) *Handshake {
	h := &Handshake{rule: r}
	h.context = sha256.Sum256(append(bytes.Clone(r.Context[:]), strings.ToLower(serverName)...))
	config.WrapSession, config.UnwrapSession = h.wrap, h.unwrap
	return h
}

// SessionID returns 64 hexadecimal digits by which a session is known over all its connections, "" if the client keeps none.
func (h *Handshake) SessionID() string {
	if !h.known {
		return ""
	}
	return hex.EncodeToString(h.id[:])
}

// wrap is a WrapSession.
func (h *Handshake) wrap(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
	if !h.known {
		_, _ = rand.Read(h.id[:]) // never fails
		h.known = true
	}
	since := time.Now()
	if cs.Version < tls.VersionTLS13 && !h.since.IsZero() {
		since = h.since // it has the same secret
	}
	entry := append(bytes.Clone(mark), h.context[:]...)
	entry = append(entry, h.id[:]...)
	s.Extra = append(s.Extra, binary.BigEndian.AppendUint64(entry, uint64(since.UnixMilli())))
	return h.rule.Keys.encrypt(cs, s)
}

// unwrap is an UnwrapSession.
func (h *Handshake) unwrap(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
	s, err := h.rule.Keys.decrypt(ticket, cs)
	if s == nil || err != nil {
		return nil, err
	}
	for _, entry := range s.Extra {
		rest, ours := bytes.CutPrefix(entry, mark)
		if !ours || len(rest) != sha256.Size+idSize+8 || !bytes.Equal(rest[:sha256.Size], h.context[:]) {
			continue
		}
		since := time.UnixMilli(int64(binary.BigEndian.Uint64(rest[sha256.Size+idSize:])))
		if age := time.Since(since); age < 0 || age > h.rule.Timeout {
			return nil, nil
		}
		copy(h.id[:], rest[sha256.Size:])
		h.known, h.since = true, since
		return s, nil
	}
	return nil, nil
}
