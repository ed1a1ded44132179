package engine

import (
	"crypto/tls"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// sslModule holds the certificates of servers and verifies those of clients (ngx_http_ssl_module.c).
var sslModule = module{
	directives: []directive{
		{name: "ssl_certificate", repeatable: true, compile: sslCertificate},
		{name: "ssl_certificate_cache", compile: sslCertificateCache},
		{name: "ssl_certificate_key", repeatable: true, compile: sslCertificateKey},
		{name: "ssl_ciphers", compile: sslCiphers, notFollowed: missingCiphers},
		{name: "ssl_client_certificate", compile: sslClientCertificate},
		{name: "ssl_conf_command", repeatable: true, compile: sslConfCommand, notFollowed: unfollowedCommand},
		{name: "ssl_crl", compile: sslCRL},
		{name: "ssl_ecdh_curve", compile: sslCurves, notFollowed: missingGroups},
		{name: "ssl_ocsp", compile: sslOCSP},
		{name: "ssl_ocsp_cache", compile: sslOCSPCache},
		{name: "ssl_ocsp_responder", compile: sslOCSPResponder},
		{name: "ssl_password_file", compile: sslPasswordFile},
		{name: "ssl_protocols", compile: sslProtocols, notFollowed: missingVersions},
		{name: "ssl_reject_handshake", compile: setFlag(sslSlot, func(s *sslSettings) *bool { return &s.reject })},
		{name: "ssl_session_cache", compile: sslSessionCache},
		{name: "ssl_session_ticket_key", repeatable: true, compile: sslSessionTicketKey},
		{name: "ssl_session_tickets", compile: setFlag(sslSlot, func(s *sslSettings) *bool { return &s.session.tickets })},
		{name: "ssl_session_timeout", compile: setDuration(sslSlot, func(s *sslSettings) *time.Duration { return &s.session.timeout })},
		{name: "ssl_stapling", compile: setFlag(sslSlot, func(s *sslSettings) *bool { return &s.stapling.on })},
		{name: "ssl_stapling_file", compile: sslStaplingFile},
		{name: "ssl_stapling_responder", compile: setText(sslSlot, func(s *sslSettings) *string { return &s.stapling.responder })},
		{name: "ssl_stapling_verify", compile: setFlag(sslSlot, func(s *sslSettings) *bool { return &s.stapling.verify })},
		{name: "ssl_trusted_certificate", compile: sslTrustedCertificate},
		{name: "ssl_verify_client", compile: setWord(sslSlot, func(s *sslSettings) *string { return &s.client.verify }, verifyModes)},
		{name: "ssl_verify_depth", compile: setNumber(sslSlot, func(s *sslSettings) *int { return &s.client.depth })},
	},
	hooks: hooks{postRead: verifyClient},
}

var sslSlot = newSlot(sslSettings{client: clientCertRule{depth: 1}, session: sessionRule{tickets: true, timeout: 5 * time.Minute}})

// sslSettings are a level's ssl_ directives. The n-th key belongs to the n-th
// certificate.
type sslSettings struct {
	certs, keys []certFile
	passwords   string       // a line each
	cache       *certs.Cache // of certificates with variables; nil: the engine's
	min, max    uint16       // 0 is Go's choice
	ciphers     []uint16     // nil is Go's choice
	curves      []tls.CurveID
	session     sessionRule
	commands    sslCommands // ssl_conf_command
	stapling    staplingRule
	client      clientCertRule
	reject      bool // handshakes; a server that does needs no certificate
}

// sslFile is a file of revocation lists.
type sslFile struct {
	name string
	at   *conf.Directive
}

// tlsConfig loads the certificates of a server that listens with TLS. k is nil for one of stream.
func (s *server) tlsConfig(k *socket, protocols []string) (*tls.Config, error) {
	settings := sslSlot.of(s.level)
	config := &tls.Config{
		MinVersion: settings.min, MaxVersion: settings.max, CipherSuites: settings.ciphers, CurvePreferences: settings.curves,
		NextProtos: protocols, SessionTicketsDisabled: settings.session.off(),
	}
	if err := s.loadCertificates(k, config); err != nil {
		return nil, err
	}
	if err := settings.commands.apply(config, settings.passwords); err != nil {
		return nil, err
	}
	return config, s.requestCertificates(config)
}

// rejecting ends a handshake: crypto/tls sends the alert unrecognized_name, as nginx does, if there is no certificate.
var rejecting = &tls.Config{}

// checkCertificates checks that the default server of each address has a certificate, or rejects handshakes, and in that case
// that the others have one or do so (ngx_http_ssl_init).
func (k *socket) checkCertificates() error {
	if !k.ssl {
		return nil
	}
	for _, v := range k.hosts {
		settings := sslSlot.of(v.standard.level)
		if len(settings.certs) > 0 {
			continue
		}
		if !settings.reject {
			return k.noCertificate(v.standard)
		}
		for _, s := range v.servers {
			if settings := sslSlot.of(s.level); len(settings.certs) == 0 && !settings.reject {
				return k.noCertificate(s)
			}
		}
	}
	return nil
}

// shareClientRules lets a server without certificates verify clients as the default server does, whose handshakes it has.
func (k *socket) shareClientRules() {
	for _, v := range k.hosts {
		for _, s := range v.servers {
			if settings := sslSlot.of(s.level); settings.client.verify != "" && settings.client.chains == nil {
				sslSlot.edit(s.level).client.chains = sslSlot.of(v.standard.level).client.chains
			}
		}
	}
}

func (k *socket) noCertificate(s *server) error {
	parameter := "ssl"
	if k.quic {
		parameter = "quic"
	}
	return s.at.Errorf("no \"ssl_certificate\" is defined for the \"listen ... %s\" directive", parameter)
}

// tlsConfig returns the configuration of a socket, nil for cleartext. The client's server name
// selects the server, whose certificates and protocols apply.
func (k *socket) tlsConfig(c *compiler) (*tls.Config, error) {
	if !k.ssl {
		return nil, nil
	}
	configs := map[*server]handshakes{}
	for _, s := range k.servers {
		if len(sslSlot.of(s.level).certs) == 0 {
			continue // its handshakes are rejected, or have the configuration of the default server
		}
		config, err := s.tlsConfig(k, k.protocols(s))
		if err == nil {
			configs[s], err = s.handshakes(config, "http")
		}
		if err != nil {
			delete(configs, s)
			if err := c.fail(err); err != nil {
				return nil, err
			}
		}
	}
	k.shareClientRules()
	standard, ok := configs[k.host(k.addr.Addr()).standard]
	if !ok {
		standard.config = &tls.Config{NextProtos: k.protocols(k.host(k.addr.Addr()).standard), SessionTicketsDisabled: true}
	}
	base := standard.config.Clone()
	base.CipherSuites = nil // HTTP/2 has demands on those that are not chosen by the client's server name
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		found, err := k.host(addrIP(hello.Conn.LocalAddr())).choose(hostName(hello.ServerName))
		if err != nil {
			return nil, err
		}
		s := found.To
		if config := s.engine.acmeHandshake(hello); config != nil {
			return config, nil
		}
		if sslSlot.of(s.level).reject {
			return rejecting, nil
		}
		h, ok := configs[s]
		if !ok {
			h = standard
		}
		return h.begin(hello, vars.ConnFrom(hello.Context())), nil
	}
	return base, nil
}

// listFile returns the path of the file that d names, "" for the name "", which names no file.
func listFile(c *compiler, d *conf.Directive) string {
	if d.Args[0] == "" {
		return ""
	}
	return absolute(c.confDir, d.Args[0])
}
