package engine

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// revocations are the lists of a file of ssl_crl or proxy_ssl_crl, nil for none. With them every
// certificate of a chain needs a list of its issuer, the root's own included
// (X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL).
type revocations struct {
	lists   []*revocationList
	anchors []*x509.Certificate // what is trusted
}

// revocationList is one list with its serial numbers, of which there may be many.
type revocationList struct {
	*x509.RevocationList
	revoked  map[string]bool
	critical bool // it has a critical extension, by which it is of some certificates alone
}

// What OpenSSL says of a certificate.
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

// removedFromList is the reason of an entry that is taken back (RFC 5280 section 5.3.1).
const removedFromList = 8

// listFile is the file that d names, "" for the name "", by which none is read.
func (c *compiler) listFile(d *conf.Directive) string {
	if d.Args[0] == "" {
		return ""
	}
	return absolute(c.confDir, d.Args[0])
}

// readRevocations reads a file of lists; nil for the name "". trusted are certificates in PEM.
// nginx would trust certificates that stand in the file of lists, too.
func readRevocations(name string, trusted []byte) (*revocations, error) {
	if name == "" {
		return nil, nil
	}
	failed := "X509_LOOKUP_load_file(\"" + name + "\") failed ("
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New(failed + conf.Errno(err) + ")")
	}
	r := &revocations{anchors: certificatesIn(trusted)}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
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

// certificatesIn are the certificates of a PEM text, without those that can't be read.
func certificatesIn(text []byte) (certs []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			certs = append(certs, c)
		}
	}
	return certs
}

// check checks a chain that is trusted. It goes on behind what is wrong and says what was last, as
// nginx does, which lets OpenSSL look at everything.
func (r *revocations) check(chain []*x509.Certificate) error {
	if r == nil {
		return nil
	}
	chain, err := r.upToRoot(chain)
	if err != nil {
		return err
	}
	return r.checkEach(chain)
}

// checkEach checks the certificates of a chain.
func (r *revocations) checkEach(chain []*x509.Certificate) (last error) {
	for i, c := range chain {
		issuer := chain[min(i+1, len(chain)-1)]
		if err := r.checkOne(c, issuer); err != nil {
			last = err
		}
	}
	return last
}

func (r *revocations) checkOne(c, issuer *x509.Certificate) error {
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

// best is the list of an issuer that says most: one that can be understood, that is valid now, the
// newest.
func (r *revocations) best(issuer *x509.Certificate, now time.Time) (best *revocationList) {
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

// fault is why the list can't be believed. What OpenSSL finds last comes first.
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

// upToRoot goes on with a chain that ends at a trusted certificate which is no root, as crypto/x509
// has it and OpenSSL has not: that one may be revoked by its own issuer.
func (r *revocations) upToRoot(chain []*x509.Certificate) ([]*x509.Certificate, error) {
	chain = chain[:len(chain):len(chain)]
	for !selfIssued(chain[len(chain)-1]) {
		issuer := issuerIn(r.anchors, chain[len(chain)-1])
		if issuer == nil || len(chain) > maxChain {
			return nil, errNoIssuer
		}
		chain = append(chain, issuer)
	}
	return chain, nil
}

// maxChain bounds a chain of certificates that sign one another in a circle.
const maxChain = 100

// checkUnknown checks a chain that nobody trusts and optional_no_ca lets in: as in nginx only a
// certificate of which the issuer is not known can do without a list. unknown is why it is not trusted.
func (r *revocations) checkUnknown(sent []*x509.Certificate, unknown error) error {
	if r == nil {
		return unknown
	}
	chain := sent[:1:1]
	for !selfIssued(chain[len(chain)-1]) && len(chain) < len(sent) {
		issuer := issuerIn(sent[1:], chain[len(chain)-1])
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

// issuerIn finds who has signed a certificate.
func issuerIn(certs []*x509.Certificate, c *x509.Certificate) *x509.Certificate {
	for _, issuer := range certs {
		if bytes.Equal(issuer.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(issuer) == nil {
			return issuer
		}
	}
	return nil
}
