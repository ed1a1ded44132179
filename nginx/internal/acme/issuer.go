package acme

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
)

// Challenges.
const (
	HTTP01    = "http-01"
	TLSALPN01 = "tls-alpn-01"
)

// Issuer is an authority.
type Issuer struct {
	// Name is the issuer's name in the configuration, and URI that of its directory.
	Name, URI string
	// AccountKey is the account's key; nil for one that is made, of the type KeyType.
	AccountKey crypto.Signer
	KeyType    KeyType
	// Challenge is HTTP01 or TLSALPN01.
	Challenge string
	// Contacts are URLs, as "mailto:admin@example.com".
	Contacts []string
	// ExternalID and ExternalKey bind the account to one that the authority knows; "" for none.
	ExternalID  string
	ExternalKey []byte
	// Roots verify the authority's server; nil: the system's. Insecure reports whether it is not verified.
	Roots    *x509.CertPool
	Insecure bool
	// Folder is where the account's key, certificates and their keys are kept; "" for nowhere.
	Folder string
	// AcceptTerms reports whether the operator agrees to the authority's terms.
	AcceptTerms bool
	// Dial connects to the authority; nil is net.Dialer's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// id identifies an issuer's account in a Store.
func (i *Issuer) id() string { return i.Name + " " + i.URI }

// Order is a certificate of an issuer.
type Order struct {
	Issuer *Issuer
	// Names are DNS names and addresses. There is at least one.
	Names []string
	Key   KeyType
}

// id identifies the order in a Store and in its issuer's folder: an order of other names is another one.
func (o *Order) id() string {
	return o.Issuer.id() + " " + string(o.Key) + " " + strings.Join(o.Names, " ")
}

// Error is a failure to obtain a certificate.
type Error struct {
	// Issuer is the issuer's name, and Names those of the certificate.
	Issuer string
	Names  []string
	// Step is what has failed: "account", "order", "challenge", "certificate" or "state".
	Step string
	// Err is the cause, an *acme.Error of golang.org/x/crypto/acme where the authority has refused something.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("acme issuer \"%s\": %s for \"%s\": %v", e.Issuer, e.Step, strings.Join(e.Names, ", "), e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
