package engine

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/ocsp"
	"github.com/culvert-go/culvert/nginx/internal/engine/tickets"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// sessionRule is what a level says of the TLS sessions of clients. They are kept in tickets in any case, which clients do not distinguish
// from a cache: there are none only without both.
type sessionRule struct {
	cache, tickets bool
	zone           string // of ssl_session_cache, "" if it is not shared
	timeout        time.Duration
	keys           []sslFile // ssl_session_ticket_key
}

func (r *sessionRule) off() bool { return !r.cache && !r.tickets }

// sslSessionCache compiles "ssl_session_cache off|none|builtin[:size]|shared:name:size ...".
func sslSessionCache(_ *compiler, l *level, d *conf.Directive) error {
	s := &sslSlot.edit(l).session
	s.cache, s.zone = false, ""
	for _, arg := range d.Args {
		kind, rest, _ := strings.Cut(arg, ":")
		switch kind {
		case "off", "none":
			continue
		case "builtin":
			if n, ok := conf.Number(rest); rest != "" && (!ok || n == 0) {
				return d.Errorf("invalid session cache \"%s\"", arg)
			}
		case "shared":
			name, size, ok := zoneParameter(rest)
			if !ok {
				return d.Errorf("invalid session cache \"%s\"", arg)
			}
			if size < 8<<12 {
				return d.Errorf("session cache \"%s\" is too small", arg)
			}
			s.zone = name
		default:
			return d.Errorf("invalid session cache \"%s\"", arg)
		}
		s.cache = true
	}
	return nil
}

// sslSessionTicketKey compiles "ssl_session_ticket_key file".
func sslSessionTicketKey(c *compiler, l *level, d *conf.Directive) error {
	s := &sslSlot.edit(l).session
	if l.first("ssl_session_ticket_key") {
		s.keys = nil
	}
	s.keys = append(s.keys[:len(s.keys):len(s.keys)], sslFile{absolute(c.confDir, d.Args[0]), d})
	return nil
}

// ticketKeys returns the keys of a server's tickets: those of its files, or random ones, which a reload keeps.
func (s *server) ticketKeys() (*tickets.Keys, error) {
	rule := &sslSlot.of(s.level).session
	if len(rule.keys) == 0 || !rule.tickets {
		return s.engine.shared.ticketKeysOf(rule.zone, rule.timeout), nil
	}
	var files [][]byte
	for _, f := range rule.keys {
		b, err := os.ReadFile(f.name)
		if err != nil {
			return nil, f.at.Errorf("open() \"%s\" failed (%s)", f.name, conf.Errno(err))
		}
		files = append(files, b)
	}
	keys, i, err := tickets.FromFiles(files)
	if err != nil {
		return nil, rule.keys[i].at.Errorf("\"%s\" %s", rule.keys[i].name, err)
	}
	return keys, nil
}

// ticketKeysID identifies random keys: a zone of sessions has its own, and the period is a session's timeout.
type ticketKeysID struct {
	zone   string
	period time.Duration
}

// ticketKeysOf returns the keys of a zone, those of the configuration before if it had them.
func (s *shared) ticketKeysOf(zone string, period time.Duration) *tickets.Keys {
	id := ticketKeysID{zone, period}
	if s.ticketKeys[id] == nil {
		keys := s.ticketKeysBefore[id]
		if keys == nil {
			keys = tickets.Rotating(period)
		}
		s.ticketKeys[id] = keys
	}
	return s.ticketKeys[id]
}

// handshakes are what a server's handshakes have in common.
type handshakes struct {
	config   *tls.Config
	rule     tickets.Rule
	staplers []*ocsp.Stapler // of the configuration's certificates; nil: there are none
}

// handshakes returns those of a server of http or stream.
func (s *server) handshakes(config *tls.Config, kind string) (handshakes, error) {
	keys, err := s.ticketKeys()
	if err != nil {
		return handshakes{}, err
	}
	staplers, err := s.staple(config)
	rule := tickets.Rule{Keys: keys, Timeout: sslSlot.of(s.level).session.timeout, Context: s.sessionContext(config, kind)}
	return handshakes{config, rule, staplers}, err
}

// sessionContext identifies what a session has begun with: one of a server is not resumed at another that shows or verifies other
// certificates (ngx_ssl_session_id_context).
func (s *server) sessionContext(config *tls.Config, kind string) [sha256.Size]byte {
	settings := sslSlot.of(s.level)
	hash := sha256.New()
	fmt.Fprintf(hash, "%s", kind)
	for _, n := range s.names {
		fmt.Fprintf(hash, "%q", n.text)
	}
	for _, cert := range config.Certificates {
		for _, der := range cert.Certificate {
			fmt.Fprintf(hash, "%d ", len(der))
			hash.Write(der)
		}
	}
	for _, f := range settings.certs { // with variables
		fmt.Fprintf(hash, "%q", f.at.Args[0])
	}
	c := &settings.client
	fmt.Fprintf(hash, "%q%d%q%q%q", c.verify, c.depth, c.accept, c.trusted, c.crl.name)
	return [sha256.Size]byte(hash.Sum(nil))
}

// begin returns the configuration of one handshake, and records what the client has offered.
func (h handshakes) begin(hello *tls.ClientHelloInfo, conn *vars.Conn) *tls.Config {
	if h.config == nil { // neither the server nor the default one has certificates
		return rejecting
	}
	conn.Hello = &vars.Hello{Ciphers: hello.CipherSuites, Curves: hello.SupportedCurves, Signatures: hello.SignatureSchemes}
	if h.config.SessionTicketsDisabled && h.staplers == nil {
		return h.config
	}
	config := h.config.Clone()
	if h.staplers != nil {
		config.Certificates = stapled(config.Certificates, h.staplers)
	}
	if !config.SessionTicketsDisabled {
		conn.Hello.SessionID = h.rule.Begin(config, hello.ServerName).SessionID
	}
	return config
}
