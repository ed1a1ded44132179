package engine

import (
	"crypto/x509"
	"encoding/base64"
	"net/url"
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/acme"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
)

// issuerRow is a directive inside acme_issuer.
type issuerRow struct {
	args    int
	more    bool // there may be more arguments
	compile func(c *compiler, i *acme.Issuer, d *conf.Directive) error
}

// issuerRows are those that there are.
var issuerRows = map[string]issuerRow{
	"accept_terms_of_service": {0, false, func(_ *compiler, i *acme.Issuer, _ *conf.Directive) error { i.AcceptTerms = true; return nil }},
	"account_key":             {1, false, issuerAccountKey},
	"challenge":               {1, false, issuerChallenge},
	"contact":                 {1, true, issuerContact},
	"external_account_key":    {2, false, issuerExternalKey},
	"ssl_trusted_certificate": {1, false, issuerRoots},
	"ssl_verify":              {1, false, issuerVerify},
	"state_path":              {1, false, issuerFolder},
	"uri":                     {1, false, issuerURI},
}

// insideIssuer returns what the parser must know of them. ssl_trusted_certificate is another module's, too.
func insideIssuer() (list []directive) {
	for name := range issuerRows {
		if name != "ssl_trusted_certificate" {
			list = append(list, directive{name: name, repeatable: name == "contact"})
		}
	}
	return list
}

// acmeIssuer compiles "acme_issuer name { ... }".
func acmeIssuer(c *compiler, _ *level, d *conf.Directive) error {
	i := &acme.Issuer{
		Name: d.Args[0], Challenge: acme.HTTP01, KeyType: acme.DefaultKey, Folder: c.path("acme_" + d.Args[0]),
	}
	if _, have := c.engine.acme.issuers[i.Name]; have {
		return d.Errorf("duplicate acme_issuer \"%s\"", i.Name)
	}
	for _, d := range d.Block {
		if err := c.fail(compileIssuerRow(c, i, d)); err != nil {
			return err
		}
	}
	if i.URI == "" {
		return d.Errorf("\"uri\" is missing in acme_issuer \"%s\"", i.Name)
	}
	c.engine.acme.issuers[i.Name] = i
	return nil
}

func compileIssuerRow(c *compiler, i *acme.Issuer, d *conf.Directive) error {
	row, ok := issuerRows[d.Name]
	switch {
	case !ok:
		return d.Errorf("\"%s\" directive is not allowed here", d.Name)
	case len(d.Args) < row.args, len(d.Args) > row.args && !row.more:
		return d.Errorf("invalid number of arguments in \"%s\" directive", d.Name)
	}
	return row.compile(c, i, d)
}

func issuerURI(_ *compiler, i *acme.Issuer, d *conf.Directive) error {
	u, err := url.Parse(d.Args[0])
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return d.Errorf("invalid uri \"%s\"", d.Args[0])
	}
	i.URI = d.Args[0]
	return nil
}

// issuerContact compiles "contact url ...": an address of mail needs no scheme.
func issuerContact(_ *compiler, i *acme.Issuer, d *conf.Directive) error {
	for _, contact := range d.Args {
		if !strings.Contains(contact, ":") {
			contact = "mailto:" + contact
		}
		i.Contacts = append(i.Contacts, contact)
	}
	return nil
}

func issuerChallenge(_ *compiler, i *acme.Issuer, d *conf.Directive) error {
	switch d.Args[0] {
	case acme.HTTP01, "http":
		i.Challenge = acme.HTTP01
	case acme.TLSALPN01, "tls-alpn":
		i.Challenge = acme.TLSALPN01
	default:
		return d.Errorf("unsupported challenge \"%s\"", d.Args[0])
	}
	return nil
}

// issuerAccountKey compiles "account_key type|file".
func issuerAccountKey(c *compiler, i *acme.Issuer, d *conf.Directive) error {
	if kind, ok := acme.ParseKeyType(d.Args[0]); ok {
		i.KeyType = kind
		return nil
	}
	text, err := readFor(c, d, d.Args[0])
	if err != nil {
		return err
	}
	if i.AccountKey, err = acme.ParseKey(text); err != nil {
		return d.Errorf("cannot use account key \"%s\": %s", d.Args[0], err)
	}
	return nil
}

// issuerExternalKey compiles "external_account_key kid file|data:key".
func issuerExternalKey(c *compiler, i *acme.Issuer, d *conf.Directive) error {
	text, direct := strings.CutPrefix(d.Args[1], "data:")
	if !direct {
		b, err := readFor(c, d, d.Args[1])
		if err != nil {
			return err
		}
		text = string(b)
	}
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	if err != nil || len(key) == 0 {
		return d.Errorf("external account key is not in base64url")
	}
	i.ExternalID, i.ExternalKey = d.Args[0], key
	return nil
}

func issuerRoots(c *compiler, i *acme.Issuer, d *conf.Directive) error {
	text, _, err := certs.ReadRoots(c.path(d.Args[0]))
	if err != nil {
		return d.Errorf("%s", err)
	}
	i.Roots = x509.NewCertPool()
	i.Roots.AppendCertsFromPEM(text)
	return nil
}

func issuerVerify(_ *compiler, i *acme.Issuer, d *conf.Directive) error {
	if d.Args[0] != "on" && d.Args[0] != "off" {
		return d.Errorf("invalid value \"%s\" in \"ssl_verify\" directive, it must be \"on\" or \"off\"", d.Args[0])
	}
	i.Insecure = d.Args[0] == "off"
	return nil
}

// issuerFolder compiles "state_path path|off".
func issuerFolder(c *compiler, i *acme.Issuer, d *conf.Directive) error {
	if i.Folder = ""; d.Args[0] != "off" {
		i.Folder = c.path(d.Args[0])
	}
	return nil
}

// readFor reads a file that d names.
func readFor(c *compiler, d *conf.Directive, name string) ([]byte, error) {
	b, err := os.ReadFile(c.path(name))
	if err != nil {
		return nil, d.Errorf("open() \"%s\" failed (%s)", c.path(name), conf.Errno(err))
	}
	return b, nil
}
