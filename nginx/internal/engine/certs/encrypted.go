package certs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"hash"
)

// errUnknownCipher is for a key that no password helps with.
var errUnknownCipher = errors.New("the key is encrypted by a method that is not supported: use PBES2 (openssl pkcs8 -topk8)")

var errDecrypt = errors.New("bad decrypt")

// decryptOf returns what decrypts the key in a block; nil if that is not encrypted.
func decryptOf(block *pem.Block) func(password string) ([]byte, error) {
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY":
		return func(password string) ([]byte, error) { return decryptPKCS8(block.Bytes, password) }
	//lint:ignore SA1019 keys of old have no other format
	case x509.IsEncryptedPEMBlock(block):
		return func(password string) ([]byte, error) { return decryptTraditional(block, password) }
	}
	return nil
}

// decryptTraditional decrypts a key with DEK-Info (RFC 1421 section 4.6.1.3). A wrong password may leave a padding that looks right.
func decryptTraditional(block *pem.Block, password string) ([]byte, error) {
	//lint:ignore SA1019 as above
	der, err := x509.DecryptPEMBlock(block, []byte(password))
	if err != nil {
		return nil, err
	}
	if _, err = x509.ParsePKCS1PrivateKey(der); err != nil {
		_, err = x509.ParseECPrivateKey(der)
	}
	return der, err
}

// encryptedKey is an EncryptedPrivateKeyInfo (RFC 5958 section 3).
type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

// pbes2 are the parameters of PBES2 (RFC 8018 appendix A.4), and pbkdf2Params those of its key (appendix A.2).
type pbes2 struct{ KDF, Cipher pkix.AlgorithmIdentifier }

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

// maxIterations bounds the time that a key takes.
const maxIterations = 5_000_000

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

// hashes are those of the pseudorandom functions, by the identifier; "" is the default.
var hashes = map[string]func() hash.Hash{
	"": sha1.New, "1.2.840.113549.2.7": sha1.New, "1.2.840.113549.2.9": sha256.New,
	"1.2.840.113549.2.10": sha512.New384, "1.2.840.113549.2.11": sha512.New,
}

// keyCipher is a block cipher in CBC mode.
type keyCipher struct {
	keyLength int
	make      func(key []byte) (cipher.Block, error)
}

var keyCiphers = map[string]keyCipher{
	"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
	"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
	"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
	"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
}

// decryptPKCS8 decrypts a key in the format of PKCS #8.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil, err
	}
	var scheme pbes2
	if !key.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, errUnknownCipher
	}
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, err
	}
	var params pbkdf2Params
	if !scheme.KDF.Algorithm.Equal(oidPBKDF2) {
		return nil, errUnknownCipher
	}
	if _, err := asn1.Unmarshal(scheme.KDF.Parameters.FullBytes, &params); err != nil {
		return nil, err
	}
	newHash, known := hashes[params.PRF.Algorithm.String()]
	c, knownCipher := keyCiphers[scheme.Cipher.Algorithm.String()]
	if !known || !knownCipher || params.Iterations <= 0 || params.Iterations > maxIterations {
		return nil, errUnknownCipher
	}
	var iv []byte
	if _, err := asn1.Unmarshal(scheme.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, err
	}
	secret, err := pbkdf2.Key(newHash, password, params.Salt, params.Iterations, c.keyLength)
	if err != nil {
		return nil, err
	}
	block, err := c.make(secret)
	if err != nil {
		return nil, err
	}
	return decryptCBC(block, iv, key.Data)
}

// decryptCBC decrypts data and removes the padding (RFC 8018 section 6.2).
func decryptCBC(block cipher.Block, iv, data []byte) ([]byte, error) {
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errDecrypt
	}
	plain := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, data)
	n := int(plain[len(plain)-1])
	if n == 0 || n > size {
		return nil, errDecrypt
	}
	for _, octet := range plain[len(plain)-n:] {
		if int(octet) != n {
			return nil, errDecrypt
		}
	}
	plain = plain[:len(plain)-n]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil { // a wrong password may leave a padding that looks right
		return nil, errDecrypt
	}
	return plain, nil
}
