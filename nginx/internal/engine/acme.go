package engine

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/acme"
)

// acmeModule has certificates issued (nginx's module ngx_http_acme_module).
var acmeModule = module{
	directives: append([]directive{
		{name: "acme_certificate", compile: acmeCertificate},
		{name: "acme_issuer", repeatable: true, declare: acmeIssuer},
	}, insideIssuer()...),
	variables: map[string]variable{
		"acme_certificate":     acmeVariable(func(c *acme.Certificate) string { return c.Chain }),
		"acme_certificate_key": acmeVariable(func(c *acme.Certificate) string { return c.Key }),
	},
	active: func(l *level) bool { return l.server != nil && len(l.server.engine.acme.issuers) > 0 },
	hooks:  hooks{rewrite: acmeChallenge},
}

// acmeSlot is the order of a server's certificate, nil if it has none.
var acmeSlot = newLocalSlot[*acme.Order]()

// acmeState is a configuration's issuers, and the work on their certificates.
type acmeState struct {
	issuers map[string]*acme.Issuer
	orders  []*acme.Order
	running sync.WaitGroup
	stop    context.CancelFunc // nil: it has not begun
}

func newACMEState() acmeState { return acmeState{issuers: map[string]*acme.Issuer{}} }

// start begins to obtain certificates. It does nothing if there is nothing to obtain. It is called once.
func (s *acmeState) start(e *Engine) {
	if len(s.orders) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() {
		acme.Run(ctx, e.shared.acme, s.orders, func(err *acme.Error) { e.logger.Error(err.Error()) }, func(o *acme.Order) {
			e.logger.Log(ctx, LevelNotice, "acme issuer \""+o.Issuer.Name+"\": certificate for \""+strings.Join(o.Names, ", ")+"\" was issued")
		})
	})
}

// retire stops it.
func (s *acmeState) retire() {
	if s.stop != nil {
		s.stop()
	}
}

// end stops it, and returns when nothing runs.
func (s *acmeState) end() {
	s.retire()
	s.running.Wait()
}

// acmeCertificate compiles "acme_certificate issuer [identifier ...] [key=type]".
func acmeCertificate(c *compiler, l *level, d *conf.Directive) error {
	issuer := c.engine.acme.issuers[d.Args[0]]
	if issuer == nil {
		return d.Errorf("acme_issuer \"%s\" is missing", d.Args[0])
	}
	o := &acme.Order{Issuer: issuer, Key: acme.DefaultKey}
	for _, arg := range d.Args[1:] {
		kind, isKey := strings.CutPrefix(arg, "key=")
		if !isKey {
			o.Names = append(o.Names, strings.ToLower(arg))
			continue
		}
		var ok bool
		if o.Key, ok = acme.ParseKeyType(kind); !ok {
			return d.Errorf("unsupported key \"%s\"", kind)
		}
	}
	*acmeSlot.edit(l) = o
	c.deferred = append(c.deferred, func() error {
		if len(o.Names) == 0 {
			o.Names = l.server.identifiers()
		}
		if len(o.Names) == 0 {
			return d.Errorf("no identifiers for \"acme_certificate\"")
		}
		for _, name := range o.Names {
			if _, ok := requestHost(name); net.ParseIP(name) == nil && (!ok || strings.ContainsAny(name, "*%[]:~")) {
				return d.Errorf("unsupported identifier \"%s\" for \"acme_certificate\"", name)
			}
		}
		c.engine.acme.orders = append(c.engine.acme.orders, o)
		return nil
	})
	return nil
}

// identifiers returns the names of a server that can be those of a certificate.
func (s *server) identifiers() (list []string) {
	for _, n := range s.names {
		switch {
		case n.re != nil, n.text == "", strings.Contains(n.text, "*"):
		default:
			list = append(list, strings.TrimPrefix(n.text, "."))
		}
	}
	return list
}

// acmeVariable returns a variable about a server's certificate, which can be named in ssl_certificate. It has no value until
// the certificate was obtained.
func acmeVariable(get func(*acme.Certificate) string) variable {
	return func(x *exchange) (string, bool) {
		o := *acmeSlot.of(x.server.level)
		if o == nil {
			return "", false
		}
		c := x.engine.shared.acme.Certificate(o)
		if c == nil {
			return "", false
		}
		return "data:" + get(c), true
	}
}

// acmeChallenge responds to the challenges of authorities, on each server.
func acmeChallenge(x *exchange, w http.ResponseWriter) (status int, changed, done bool) {
	if !strings.HasPrefix(x.URI, acme.ChallengePath) || x.main != nil {
		return 0, false, false
	}
	content := x.engine.shared.acme.Response(x.URI)
	if content == "" || x.HTTP.Method != http.MethodGet && x.HTTP.Method != http.MethodHead {
		return 0, false, false
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(http.StatusOK)
	if x.HTTP.Method != http.MethodHead {
		_, _ = io.WriteString(w, content)
	}
	return 0, false, true
}

// acmeHandshake returns the configuration of a handshake by which an authority verifies a name, nil for any other.
func (e *Engine) acmeHandshake(hello *tls.ClientHelloInfo) *tls.Config {
	if len(e.acme.issuers) == 0 {
		return nil
	}
	if c := e.shared.acme.ALPN(hello); c != nil {
		return &tls.Config{Certificates: []tls.Certificate{*c}, NextProtos: hello.SupportedProtos}
	}
	return nil
}
