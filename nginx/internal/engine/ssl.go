package engine

import (
	"crypto/tls"
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
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
	certs, keys []sslFile
	passwords   string // of ssl_password_file, a line each
	min, max    uint16 // 0 is Go's choice
	client      clientCertRule
	reject      bool // handshakes; a server that does needs no certificate
}

type sslFile struct {
	name string
	at   *conf.Directive
}

func sslCertificate(c *compiler, l *level, d *conf.Directive) error {
	s := sslSlot.edit(l)
	if l.first("ssl_certificate") {
		s.certs = nil
	}
	s.certs = append(s.certs, sslFile{absolute(c.confDir, d.Args[0]), d})
	return nil
}

func sslCertificateKey(c *compiler, l *level, d *conf.Directive) error {
	s := sslSlot.edit(l)
	if l.first("ssl_certificate_key") {
		s.keys = nil
	}
	s.keys = append(s.keys, sslFile{absolute(c.confDir, d.Args[0]), d})
	return nil
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

// tlsConfig loads the certificates of a server that listens with TLS.
func (s *server) tlsConfig(http2 bool) (*tls.Config, error) {
	settings := sslSlot.of(s.level)
	config := &tls.Config{MinVersion: settings.min, MaxVersion: settings.max, NextProtos: []string{"http/1.1"}}
	if http2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	if len(settings.keys) < len(settings.certs) {
		cert := settings.certs[len(settings.keys)]
		return nil, cert.at.Errorf("no \"ssl_certificate_key\" is defined for certificate \"%s\"", cert.at.Args[0])
	}
	for i, cert := range settings.certs {
		pair, err := loadPair(cert, settings.keys[i], settings.passwords)
		if err != nil {
			return nil, err
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return config, s.requestCertificates(config)
}

// rejecting ends a handshake: crypto/tls sends the alert unrecognized_name, as nginx does, if there is no certificate.
var rejecting = &tls.Config{}

// sslPasswordFile compiles "ssl_password_file file".
func sslPasswordFile(c *compiler, l *level, d *conf.Directive) (err error) {
	sslSlot.edit(l).passwords, err = readPasswords(c, d)
	return err
}

// readPasswords reads the file that d names at once: it may be a pipe.
func readPasswords(c *compiler, d *conf.Directive) (string, error) {
	list, err := certs.ReadPasswords(absolute(c.confDir, d.Args[0]))
	if err != nil {
		return "", d.Errorf("%s", err)
	}
	return strings.Join(list, "\n"), nil
}

// loadPair loads a certificate. An encrypted key is decrypted by one of the passwords, of which each is a line.
func loadPair(cert, key sslFile, passwords string) (tls.Certificate, error) {
	certPEM, err := os.ReadFile(cert.name)
	if err != nil {
		return tls.Certificate{}, cert.at.Errorf("cannot load certificate \"%s\": %s", cert.name, conf.Errno(err))
	}
	keyPEM, err := os.ReadFile(key.name)
	if err != nil {
		return tls.Certificate{}, key.at.Errorf("cannot load certificate key \"%s\": %s", key.name, conf.Errno(err))
	}
	var list []string
	if passwords != "" {
		list = strings.Split(passwords, "\n")
	}
	pair, err := certs.Pair(certPEM, keyPEM, list)
	if err != nil {
		return tls.Certificate{}, key.at.Errorf("cannot use certificate \"%s\" with key \"%s\": %s", cert.name, key.name, err)
	}
	return pair, nil
}

// tlsConfig returns the configuration of a socket, nil for cleartext. The client's server name
// selects the server, whose certificates and protocols apply.
func (k *socket) tlsConfig() (*tls.Config, error) {
	if !k.ssl {
		return nil, nil
	}
	configs := map[*server]*tls.Config{}
	for _, s := range k.servers {
		config, err := s.tlsConfig(k.allowsHTTP2(s))
		if err != nil {
			return nil, err
		}
		if len(config.Certificates) > 0 || sslSlot.of(s.level).reject {
			configs[s] = config
		}
	}
	standard := configs[k.host(k.addr.Addr()).standard]
	if standard == nil {
		standard = &tls.Config{NextProtos: []string{"http/1.1"}}
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
