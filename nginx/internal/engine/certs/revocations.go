package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// Revocations are the lists of a file of ssl_crl or proxy_ssl_crl, nil for none. With them every
// certificate of a chain, including the root, needs a list of its issuer (X509_V_FLAG_CRL_CHECK |
// X509_V_FLAG_CRL_CHECK_ALL).
type Revocations struct{ lists []*revocationList }

// revocationList is one list with an index of its serial numbers, of which there may be many.
type revocationList struct {
	*x509.RevocationList
	revoked  map[string]bool
	critical bool // it has a critical extension, which limits it to some certificates
}

// Errors of a certificate, in OpenSSL's words.
var (
	errRevoked     = errors.New("certificate revoked")
	errNoList      = errors.New("unable to get certificate CRL")
	errListExpired = errors.New("CRL has expired")
	errListEarly   = errors.New("CRL is not yet valid")
	errListSigned  = errors.New("CRL signature failure")
	errListSigner  = errors.New("key usage does not include CRL signing")
	errListUnknown = errors.New("unhandled critical CRL extension")
	errNoIssuer    = errors.New("unable to get issuer certificate")
)

// removedFromList is the reason of a withdrawn entry (RFC 5280 section 5.3.1).
const removedFromList = 8

// ReadRevocations reads a file of lists, and returns nil for the name "". Unlike nginx it does not trust certificates in the file.
func ReadRevocations(name string) (*Revocations, error) {
	if name == "" {
		return nil, nil
	}
	failed := "X509_LOOKUP_load_file(\"" + name + "\") failed ("
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New(failed + conf.Errno(err) + ")")
	}
	r := &Revocations{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := parseList(block.Bytes)
		if err != nil {
			return nil, errors.New(failed + err.Error() + ")")
		}
		r.lists = append(r.lists, newRevocationList(list))
	}
	if len(r.lists) == 0 {
		return nil, errors.New(failed + "no certificate or crl found)")
	}
	return r, nil
}

func newRevocationList(parsed *x509.RevocationList) *revocationList {
	l := &revocationList{RevocationList: parsed, revoked: map[string]bool{}}
	for _, entry := range parsed.RevokedCertificateEntries {
		if entry.ReasonCode != removedFromList {
			l.revoked[entry.SerialNumber.String()] = true
		}
	}
	for _, extension := range parsed.Extensions {
		l.critical = l.critical || extension.Critical
	}
	return l
}

// check checks a trusted chain. It continues after an error and returns the last one, as nginx
// does, which lets OpenSSL check everything.
func (r *Revocations) check(chain []*x509.Certificate) error {
	if r == nil {
		return nil
	}
	return r.checkEach(chain)
}

// checkEach checks the certificates of a chain.
func (r *Revocations) checkEach(chain []*x509.Certificate) (last error) {
	for i, c := range chain {
		issuer := chain[min(i+1, len(chain)-1)]
		if err := r.checkOne(c, issuer); err != nil {
			last = err
		}
	}
	return last
}

func (r *Revocations) checkOne(c, issuer *x509.Certificate) error {
	now := time.Now()
	list := r.best(issuer, now)
	if list == nil {
		return errNoList
	}
	if list.revoked[c.SerialNumber.String()] {
		return errRevoked
	}
	return list.fault(issuer, now)
}

// best returns the preferred list of an issuer: one that is understood, then one that is valid
// now, then the newest.
func (r *Revocations) best(issuer *x509.Certificate, now time.Time) (best *revocationList) {
	for _, l := range r.lists {
		if l.isOf(issuer) && (best == nil || l.betterThan(best, now)) {
			best = l
		}
	}
	return best
}

func (l *revocationList) isOf(issuer *x509.Certificate) bool {
	if !bytes.Equal(l.RawIssuer, issuer.RawSubject) {
		return false
	}
	return len(l.AuthorityKeyId) == 0 || len(issuer.SubjectKeyId) == 0 || bytes.Equal(l.AuthorityKeyId, issuer.SubjectKeyId)
}

func (l *revocationList) betterThan(other *revocationList, now time.Time) bool {
	if l.critical != other.critical {
		return other.critical
	}
	if mine, others := l.timeFault(now) == nil, other.timeFault(now) == nil; mine != others {
		return mine
	}
	return l.ThisUpdate.After(other.ThisUpdate)
}

// fault returns why the list can't be used. Errors that OpenSSL finds last come first.
func (l *revocationList) fault(issuer *x509.Certificate, now time.Time) error {
	switch {
	case l.critical:
		return errListUnknown
	case issuer.CheckSignature(l.SignatureAlgorithm, l.RawTBSRevocationList, l.Signature) != nil:
		return errListSigned
	case l.timeFault(now) != nil:
		return l.timeFault(now)
	case issuer.KeyUsage != 0 && issuer.KeyUsage&x509.KeyUsageCRLSign == 0:
		return errListSigner
	}
	return nil
}

func (l *revocationList) timeFault(now time.Time) error {
	switch {
	case now.Before(l.ThisUpdate):
		return errListEarly
	case !l.NextUpdate.IsZero() && now.After(l.NextUpdate):
		return errListExpired
	}
	return nil
}

// checkUnknown checks an untrusted chain that optional_no_ca accepts. As in nginx, only a
// certificate whose issuer is unknown needs no list. unknown is why the chain is not trusted.
func (r *Revocations) checkUnknown(sent []*x509.Certificate, unknown error) error {
	if r == nil {
		return unknown
	}
	chain, checks := sent[:1:1], maxChecks
	for !selfIssued(chain[len(chain)-1]) && len(chain) < len(sent) {
		issuer := issuerIn(sent[1:], chain[len(chain)-1], &checks)
		if issuer == nil {
			break
		}
		chain = append(chain, issuer)
	}
	if len(chain) == 1 && !selfIssued(chain[0]) {
		return unknown
	}
	if err := r.checkEach(chain); err != nil {
		return err
	}
	return unknown
}

func selfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }

// maxChecks bounds the signatures that are checked for what one peer has sent, as crypto/x509 bounds its own search.
const maxChecks = 100

// issuerIn returns the certificate among certs that has signed c, nil if there is none. It makes no more than left checks, which it
// counts down: the peer chooses how many certificates of one name it sends.
func issuerIn(certs []*x509.Certificate, c *x509.Certificate, left *int) *x509.Certificate {
	for _, issuer := range certs {
		if !bytes.Equal(issuer.RawSubject, c.RawIssuer) {
			continue
		}
		if *left--; *left < 0 {
			return nil
		}
		if c.CheckSignatureFrom(issuer) == nil {
			return issuer
		}
	}
	return nil
}
