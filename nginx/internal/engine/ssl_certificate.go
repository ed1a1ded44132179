package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// certFile is a file of a certificate or a key, or itself behind "data:". Its variables are evaluated for each handshake.
type certFile struct {
	vars.Value
	dir string // what the name is relative to
	at  *conf.Directive
}

// certPair is a certificate with its key.
type certPair struct{ cert, key certFile }

func (p certPair) constant() bool { return isConstant(p.cert.Value) && isConstant(p.key.Value) }

func newCertFile(c *compiler, d *conf.Directive) (certFile, error) {
	v, err := c.value(d, d.Args[0])
	return certFile{v, c.confDir, d}, err
}

// name returns the absolute name of the file, "" for the empty text. r is nil if there are no variables.
func (f certFile) name(r *vars.Request) string {
	name := f.String(r)
	if name == "" || strings.HasPrefix(name, "data:") {
		return name
	}
	return absolute(f.dir, name)
}

func sslCertificate(c *compiler, l *level, d *conf.Directive) error {
	s := sslSlot.edit(l)
	if l.first("ssl_certificate") {
		s.certs = nil
	}
	f, err := newCertFile(c, d)
	s.certs = append(s.certs, f)
	return err
}

func sslCertificateKey(c *compiler, l *level, d *conf.Directive) error {
	s := sslSlot.edit(l)
	if l.first("ssl_certificate_key") {
		s.keys = nil
	}
	f, err := newCertFile(c, d)
	s.keys = append(s.keys, f)
	return err
}

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

// loadPair loads a certificate and its key, which is decrypted by one of the passwords, of which each is a line. The errors are for
// the log, or name the directives.
func loadPair(cert, key, passwords string, p certPair) (tls.Certificate, error) {
	for _, f := range []*certFile{&p.cert, &p.key} {
		if f.at == nil {
			f.at = &conf.Directive{} // the error is for the log of a connection
		}
	}
	certPEM, err := certs.Read(cert)
	if err != nil {
		return tls.Certificate{}, p.cert.at.Errorf("cannot load certificate \"%s\": %s", cert, conf.Errno(err))
	}
	keyPEM, err := certs.Read(key)
	if err != nil {
		return tls.Certificate{}, p.key.at.Errorf("cannot load certificate key \"%s\": %s", key, conf.Errno(err))
	}
	var list []string
	if passwords != "" {
		list = strings.Split(passwords, "\n")
	}
	pair, err := certs.Pair(certPEM, keyPEM, list)
	if err != nil {
		return tls.Certificate{}, p.key.at.Errorf("cannot use certificate \"%s\" with key \"%s\": %s", cert, key, err)
	}
	return pair, nil
}

// loadCertificates gives a configuration the server's certificates: at load, or for each handshake if they have variables.
func (s *server) loadCertificates(k *socket, config *tls.Config) error {
	settings := sslSlot.of(s.level)
	if len(settings.keys) < len(settings.certs) {
		cert := settings.certs[len(settings.keys)]
		return cert.at.Errorf("no \"ssl_certificate_key\" is defined for certificate \"%s\"", cert.at.Args[0])
	}
	var pairs []certPair
	constant := true
	for i, cert := range settings.certs {
		p := certPair{cert, settings.keys[i]}
		pairs, constant = append(pairs, p), constant && p.constant()
	}
	if !constant {
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.certificateFor(k, pairs, hello)
		}
		return nil
	}
	for _, p := range pairs {
		pair, err := loadPair(p.cert.name(nil), p.key.name(nil), settings.passwords, p)
		if err != nil {
			return err
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return nil
}

// errNoCertificate ends a handshake. Why there is none is in the error log.
var errNoCertificate = errors.New("no certificate for the handshake")

// certificateFor loads the certificates of a handshake, and returns the first that the client supports.
func (s *server) certificateFor(k *socket, pairs []certPair, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	var r *vars.Request
	var logError func(string)
	if session := stream.SessionOf(hello); session != nil {
		session.TLS = &tls.ConnectionState{ServerName: fileName(hello)}
		r, logError = &session.Request, session.Error
	} else {
		x := s.handshake(k, hello)
		r, logError = &x.Request, x.logError
	}
	var first *tls.Certificate
	settings := sslSlot.of(s.level)
	for _, p := range pairs {
		pair, err := s.engine.cachedPair(settings.cache, p.cert.name(r), p.key.name(r), settings.passwords)
		if err != nil {
			logError(err.Error())
			return nil, errNoCertificate
		}
		if hello.SupportsCertificate(&pair.Certificate) == nil {
			return &pair.Certificate, nil
		}
		if first == nil {
			first = &pair.Certificate
		}
	}
	return first, nil
}

// fileName returns the server name of a handshake, "" for one that is no host name: it may become a part of a file's name.
func fileName(hello *tls.ClientHelloInfo) string {
	name, _ := requestHost(hello.ServerName)
	if strings.ContainsAny(name, "%:") || strings.HasPrefix(name, ".") || name != filepath.Base(name) {
		return ""
	}
	return name
}

// handshake returns an exchange for the variables of a handshake: there is no request yet.
func (s *server) handshake(k *socket, hello *tls.ClientHelloInfo) *exchange {
	name := fileName(hello)
	ctx := context.WithValue(hello.Context(), http.LocalAddrContextKey, hello.Conn.LocalAddr())
	x := &exchange{engine: s.engine, socket: k, server: s, level: s.level, context: exchangeContext{Context: ctx}}
	r := &http.Request{
		Header: http.Header{}, URL: &url.URL{}, RemoteAddr: hello.Conn.RemoteAddr().String(), ProtoMajor: 1, ProtoMinor: 1,
		TLS: &tls.ConnectionState{ServerName: name},
	}
	x.context.x, x.Owner, x.HTTPS = x, x, true
	x.request = *r.WithContext(&x.context)
	x.HTTP, x.Conn, x.Header = &x.request, vars.ConnFrom(ctx), http.Header{}
	return x
}
