// Package acme obtains and renews certificates for a configuration by ACME (RFC 8555), over golang.org/x/crypto/acme.
//
// A Store holds what outlives a configuration: certificates, accounts and the responses to challenges. Run works on the orders
// of one configuration until its context ends. What is in an issuer's folder is used again by the next process.
package acme
