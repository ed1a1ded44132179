package engine

import (
	"crypto/tls"

	"github.com/culvert-go/culvert/nginx/conf"
)

// sslModule holds the certificates of servers and verifies those of clients (ngx_http_ssl_module.c).
var sslModule = module{
	directives: []directive{
		{name: "ssl_certificate", repeatable: true, compile: sslCertificate},
		{name: "ssl_certificate_key", repeatable: true, compile: sslCertificateKey},
		{name: "ssl_client_certificate", compile: sslClientCertificate},
		{name: "ssl_crl", compile: sslCRL},
		{name: "ssl_password_file", compile: sslPasswordFile},
		{name: "ssl_protocols", compile: sslProtocols},
		{name: "ssl_reject_handshake", compile: setFlag(sslSlot, func(s *sslSettings) *bool { return &s.reject })},
		{name: "ssl_trusted_certificate", compile: sslTrustedCertificate},
		{name: "ssl_verify_client", compile: setWord(sslSlot, func(s *sslSettings) *string { return &s.client.verify }, verifyModes)},
		{name: "ssl_verify_depth", compile: setNumber(sslSlot, func(s *sslSettings) *int { return &s.client.depth })},
	},
	hooks: hooks{postRead: verifyClient},
}

var sslSlot = newSlot(sslSettings{client: clientCertRule{depth: 1}})

// sslSettings are a level's ssl_ directives. The n-th key belongs to the n-th
// certificate.
type sslSettings struct {
	certs, keys []certFile
	passwords   string // a line each
	min, max    uint16 // 0 is Go's choice
	client      clientCertRule
	reject      bool // handshakes; a server that does needs no certificate
}

// sslFile is a file of revocation lists.
type sslFile struct {
	name string
	at   *conf.Directive
}

func sslProtocols(_ *compiler, l *level, d *conf.Directive) (err error) {
	s := sslSlot.edit(l)
	s.min, s.max, err = tlsVersions(d)
	return err
}

// tlsVersions parses the names of protocols; 0 is Go's choice.
func tlsVersions(d *conf.Directive) (least, most uint16, err error) {
	versions := map[string]uint16{
		"SSLv2": 0, "SSLv3": 0, // older than anything that is supported
		"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
	}
	for _, name := range d.Args {
		v, ok := versions[name]
		if !ok {
			return 0, 0, d.Errorf("invalid value \"%s\"", name)
		}
		if v == 0 {
			continue
		}
		if least == 0 || v < least {
			least = v
		}
		most = max(most, v)
	}
	return least, most, nil
}

// tlsConfig loads the certificates of a server that listens with TLS. k is nil for one of stream.
func (s *server) tlsConfig(k *socket, protocols []string) (*tls.Config, error) {
	settings := sslSlot.of(s.level)
	config := &tls.Config{MinVersion: settings.min, MaxVersion: settings.max, NextProtos: protocols}
	if err := s.loadCertificates(k, config); err != nil {
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
func (k *socket) tlsConfig() (*tls.Config, error) {
	if !k.ssl {
		return nil, nil
	}
	configs := map[*server]*tls.Config{}
	for _, s := range k.servers {
		if len(sslSlot.of(s.level).certs) == 0 {
			continue // its handshakes are rejected, or have the configuration of the default server
		}
		config, err := s.tlsConfig(k, k.protocols(s))
		if err != nil {
			return nil, err
		}
		configs[s] = config
	}
	k.shareClientRules()
	standard := configs[k.host(k.addr.Addr()).standard]
	if standard == nil {
		standard = &tls.Config{NextProtos: k.protocols(k.host(k.addr.Addr()).standard)}
	}
	base := standard.Clone()
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s, _, _ := k.host(addrIP(hello.Conn.LocalAddr())).choose(hostName(hello.ServerName))
		if sslSlot.of(s.level).reject {
			return rejecting, nil
		}
		if config := configs[s]; config != nil {
			return config, nil
		}
		return standard, nil
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
