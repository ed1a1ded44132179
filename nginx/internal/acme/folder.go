package acme

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder is where an issuer's files are kept, readable for their owner alone; "" keeps nothing.
type folder string

// accountFile is the name of the account's key.
const accountFile = "account.key"

// read returns a file, nil if there is none.
func (f folder) read(name string) ([]byte, error) {
	if f == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// write replaces a file at once, so that no reader ever finds a part of it.
func (f folder) write(name string, b []byte) error {
	if f == "" {
		return nil
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(string(f), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // in vain if it was renamed
	_, err = temporary.Write(b)
	if err := errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), filepath.Join(string(f), name))
}

// fileOf returns the name of an order's file: one that people recognise, and a hash of all that the order is.
func fileOf(o *Order) string {
	sum := sha256.Sum256([]byte(o.id()))
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, strings.ToLower(o.Names[0]))
	return strings.TrimLeft(name, ".") + "-" + hex.EncodeToString(sum[:8]) + ".pem"
}
