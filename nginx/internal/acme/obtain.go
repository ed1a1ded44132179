package acme

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
)

// patience bounds the time for one certificate.
const patience = 5 * time.Minute

func (o *Order) failure(step string, err error) *Error {
	return &Error{Issuer: o.Issuer.Name, Names: o.Names, Step: step, Err: err}
}

// obtain obtains a certificate with a client, which has an account, and keeps it.
func (s *Store) obtain(ctx context.Context, client *acme.Client, o *Order) *Error {
	order, err := client.AuthorizeOrder(ctx, identifiers(o.Names))
	if err != nil {
		return o.failure("order", err)
	}
	for _, url := range order.AuthzURLs {
		if err := s.authorize(ctx, client, o.Issuer.Challenge, url); err != nil {
			return o.failure("challenge", err)
		}
	}
	if order, err = client.WaitOrder(ctx, order.URI); err != nil {
		return o.failure("order", err)
	}
	certificate, err := request(ctx, client, o, order)
	if err != nil {
		return o.failure("certificate", err)
	}
	s.setCertificate(o, certificate)
	if err := folder(o.Issuer.Folder).write(fileOf(o), certificate.text()); err != nil {
		return o.failure("state", err)
	}
	return nil
}

// identifiers returns names as those of an order.
func identifiers(names []string) (list []acme.AuthzID) {
	for _, name := range names {
		if net.ParseIP(name) != nil {
			list = append(list, acme.IPIDs(name)...)
		} else {
			list = append(list, acme.DomainIDs(name)...)
		}
	}
	return list
}

// request requests the certificate of an order whose names are verified, with a new key.
func request(ctx context.Context, client *acme.Client, o *Order, order *acme.Order) (*Certificate, error) {
	key, err := o.Key.generate()
	if err != nil {
		return nil, err
	}
	template := &x509.CertificateRequest{}
	for _, name := range o.Names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, order, csr, true)
	if err != nil {
		return nil, err
	}
	return newCertificate(chain, key, o.Names, time.Now())
}

// authorize shows the authority that a name is ours.
func (s *Store) authorize(ctx context.Context, client *acme.Client, kind, url string) error {
	z, err := client.GetAuthorization(ctx, url)
	if err != nil || z.Status == acme.StatusValid {
		return err
	}
	i := slices.IndexFunc(z.Challenges, func(c *acme.Challenge) bool { return c.Type == kind })
	if i < 0 {
		return fmt.Errorf("the authority offers no %s for %s", kind, z.Identifier.Value)
	}
	forget, err := s.prepare(client, z.Challenges[i], z.Identifier.Value)
	if err != nil {
		return err
	}
	defer forget()
	if _, err := client.Accept(ctx, z.Challenges[i]); err != nil {
		return err
	}
	_, err = client.WaitAuthorization(ctx, url)
	return err
}

// prepare has the servers respond to a challenge until forget is called.
func (s *Store) prepare(client *acme.Client, c *acme.Challenge, name string) (forget func(), err error) {
	if c.Type == HTTP01 {
		content, err := client.HTTP01ChallengeResponse(c.Token)
		if err != nil {
			return nil, err
		}
		return s.respond(client.HTTP01ChallengePath(c.Token), content), nil
	}
	certificate, err := client.TLSALPN01ChallengeCert(c.Token, name)
	if err != nil {
		return nil, err
	}
	return s.present(strings.ToLower(name), &certificate), nil
}

// ErrTerms is the cause of an Error where the operator has not agreed to the authority's terms.
var ErrTerms = errors.New("the terms of service are not accepted")

// account returns a client with an account, which it makes if there is none.
func (s *Store) account(ctx context.Context, i *Issuer) (*acme.Client, error) {
	key, err := s.keyOf(i)
	if err != nil {
		return nil, err
	}
	client := &acme.Client{Key: key, DirectoryURL: i.URI, UserAgent: "culvert-nginx", HTTPClient: i.httpClient()}
	directory, err := client.Discover(ctx)
	if err != nil {
		return nil, err
	}
	if directory.Terms != "" && !i.AcceptTerms {
		return nil, fmt.Errorf("%w (accept_terms_of_service): %s", ErrTerms, directory.Terms)
	}
	account := &acme.Account{Contact: i.Contacts}
	if i.ExternalID != "" {
		account.ExternalAccountBinding = &acme.ExternalAccountBinding{KID: i.ExternalID, Key: i.ExternalKey}
	}
	if _, err := client.Register(ctx, account, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, err
	}
	return client, nil
}

// keyOf returns the account's key: the configured one, the one that is kept, or a new one.
func (s *Store) keyOf(i *Issuer) (crypto.Signer, error) {
	if i.AccountKey != nil {
		return i.AccountKey, nil
	}
	if key := s.accountKey(i); key != nil {
		return key, nil
	}
	kept := folder(i.Folder)
	text, err := kept.read(accountFile)
	if err != nil {
		return nil, err
	}
	var key crypto.Signer
	if text != nil {
		key, err = ParseKey(text)
	} else {
		key, err = i.newKey(kept)
	}
	if err == nil {
		s.setAccountKey(i, key)
	}
	return key, err
}

// newKey makes the account's key.
func (i *Issuer) newKey(kept folder) (crypto.Signer, error) {
	key, err := i.KeyType.generate()
	if err != nil {
		return nil, err
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, kept.write(accountFile, text)
}

// httpClient returns a client for the authority.
func (i *Issuer) httpClient() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: i.Dial, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: i.Roots, InsecureSkipVerify: i.Insecure},
	}}
}
