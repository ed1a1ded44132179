package engine

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/openssl"
)

// sslCommands are the configuration commands of OpenSSL that crypto/tls has something for. They win over directives. They are comparable.
type sslCommands struct {
	cert, key       string // files
	ciphers, groups string // lists
	min, max        uint16
	tickets         string // "SessionTicket", "-SessionTicket" or ""
}

const (
	notOpenSSL    = "it is OpenSSL's"
	ownPreference = "crypto/tls orders the cipher suites itself"
)

// add adds "ssl_conf_command name value". What is not followed of it is described in unfollowedCommand.
func (s *sslCommands) add(c *compiler, l *level, d *conf.Directive) error {
	if l.first(d.Name) {
		*s = sslCommands{}
	}
	value := d.Args[1]
	switch strings.ToLower(d.Args[0]) {
	case "certificate":
		s.cert = absolute(c.confDir, value)
	case "privatekey":
		s.key = absolute(c.confDir, value)
	case "cipherstring":
		if s.ciphers = value; !openssl.ParseCiphers(value).Matched {
			return commandFailed(d)
		}
	case "curves", "groups":
		if s.groups = value; openssl.ParseGroups(value).Unknown != "" {
			return commandFailed(d)
		}
	case "minprotocol", "maxprotocol":
		version, ok := versionNames[value]
		if !ok && value != "None" {
			return commandFailed(d)
		}
		if strings.EqualFold(d.Args[0], "minprotocol") {
			s.min = version
		} else {
			s.max = version
		}
	case "options":
		for option := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimLeft(option, "+-"), "SessionTicket") {
				s.tickets = strings.TrimLeft(option, "+")
			}
		}
	}
	return nil
}

func commandFailed(d *conf.Directive) error {
	return d.Errorf("SSL_CONF_cmd(\"%s\", \"%s\") failed", d.Args[0], d.Args[1])
}

// unfollowedCommand returns why a command is not followed, "" if it is.
func unfollowedCommand(d *conf.Directive) string {
	if len(d.Args) != 2 {
		return ""
	}
	list := &conf.Directive{Args: d.Args[1:]}
	switch strings.ToLower(d.Args[0]) {
	case "certificate", "privatekey", "minprotocol", "maxprotocol":
		return ""
	case "cipherstring":
		return missingCiphers(list)
	case "curves", "groups":
		return missingGroups(list)
	case "options":
		for option := range strings.SplitSeq(d.Args[1], ",") {
			switch strings.ToLower(strings.TrimLeft(option, "+-")) {
			case "sessionticket":
			case "serverpreference":
				return ownPreference
			default:
				return notOpenSSL
			}
		}
		return ""
	}
	return notOpenSSL
}

// apply changes a configuration. passwords are those of the key, a line each.
func (s sslCommands) apply(config *tls.Config, passwords string) error {
	if s.min != 0 {
		config.MinVersion = s.min
	}
	if s.max != 0 {
		config.MaxVersion = s.max
	}
	if s.ciphers != "" {
		config.CipherSuites = openssl.ParseCiphers(s.ciphers).IDs
	}
	if s.groups != "" {
		config.CurvePreferences = openssl.ParseGroups(s.groups).IDs
	}
	if s.tickets != "" {
		config.SessionTicketsDisabled = strings.HasPrefix(s.tickets, "-")
	}
	if s.cert == "" {
		return nil
	}
	key := s.key
	if key == "" {
		key = s.cert
	}
	pair, err := loadPair(s.cert, key, passwords, certPair{})
	if err != nil {
		return err
	}
	kind := keyKind(&pair)
	config.Certificates = append([]tls.Certificate{pair}, slices.DeleteFunc(slices.Clone(config.Certificates), func(other tls.Certificate) bool {
		return keyKind(&other) == kind
	})...)
	return nil
}

// keyKind returns the algorithm of a certificate's key: OpenSSL has one certificate of each.
func keyKind(pair *tls.Certificate) x509.PublicKeyAlgorithm {
	if c, err := x509.ParseCertificate(pair.Certificate[0]); err == nil {
		return c.PublicKeyAlgorithm
	}
	return x509.UnknownPublicKeyAlgorithm
}

func sslConfCommand(c *compiler, l *level, d *conf.Directive) error {
	return sslSlot.edit(l).commands.add(c, l, d)
}

func (f *family) sslConfCommand(c *compiler, l *level, d *conf.Directive) error {
	return f.slot.edit(l).tls.commands.add(c, l, d)
}

func streamProxyConfCommand(c *compiler, l *level, d *conf.Directive) error {
	return streamProxySlot.edit(l).tls.commands.add(c, l, d)
}

// cipherList compiles "proxy_ssl_ciphers list" and its like, whose list is parsed again for each configuration.
func cipherList(list *string, d *conf.Directive) error {
	if *list = d.Args[0]; !openssl.ParseCiphers(*list).Matched {
		return d.Errorf("SSL_CTX_set_cipher_list(\"%s\") failed (no cipher match)", *list)
	}
	return nil
}

func (f *family) sslCiphers(_ *compiler, l *level, d *conf.Directive) error {
	return cipherList(&f.slot.edit(l).tls.ciphers, d)
}

func streamProxyCiphers(_ *compiler, l *level, d *conf.Directive) error {
	return cipherList(&streamProxySlot.edit(l).tls.ciphers, d)
}

// applyTo applies what a rule says of cipher suites, and its commands.
func (r *tlsRule) applyTo(config *tls.Config) error {
	if r.ciphers != "" {
		config.CipherSuites = openssl.ParseCiphers(r.ciphers).IDs
	}
	return r.commands.apply(config, r.passwords)
}
