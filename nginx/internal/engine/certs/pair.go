package certs

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// ReadPasswords reads a file of ssl_password_file: a password a line.
func ReadPasswords(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New("open() \"" + name + "\" failed (" + conf.Errno(err) + ")")
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if password := strings.TrimRight(line, "\r\n"); password != "" {
			list = append(list, password)
		}
	}
	return list, nil
}

// Pair returns a certificate and its key, in PEM. An encrypted key is decrypted with the first of passwords that fits.
func Pair(cert, key []byte, passwords []string) (tls.Certificate, error) {
	key, err := decrypted(key, passwords)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(trusted(cert), key)
}

var errNoPassword = errors.New("the key is encrypted, and no password of ssl_password_file fits")

// decrypted returns PEM in which the first key is not encrypted.
func decrypted(text []byte, passwords []string) ([]byte, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		decrypt := decryptOf(block)
		if decrypt == nil {
			if strings.HasSuffix(block.Type, "PRIVATE KEY") {
				return text, nil
			}
			continue
		}
		for _, password := range passwords {
			der, err := decrypt(password)
			if errors.Is(err, errUnknownCipher) {
				return nil, err
			}
			if err == nil {
				kind := strings.TrimPrefix(block.Type, "ENCRYPTED ")
				return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes.Clone(der)}), nil
			}
		}
		return nil, errNoPassword
	}
	return text, nil
}
