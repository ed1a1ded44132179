package scan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Keys holds the keys of one JSON object. A key that is there twice is an error, however it is
// escaped: decoders do not agree on which of them counts.
type Keys struct {
	seen  [24][]byte
	count int
	more  map[string]bool
}

// Add adds a quoted key, which is kept.
func (k *Keys) Add(key []byte) error {
	if bytes.IndexByte(key, '\\') >= 0 {
		plain, err := Unquote(key)
		if err != nil {
			return err
		}
		key = append(append([]byte{'"'}, plain...), '"')
	}
	for _, seen := range k.seen[:k.count] {
		if len(seen) == len(key) && string(seen) == string(key) {
			return fmt.Errorf("%w: the key %s twice", ErrJSON, key)
		}
	}
	switch {
	case k.count < len(k.seen):
		k.seen[k.count] = key
		k.count++
		return nil
	case k.more == nil:
		k.more = map[string]bool{}
	case k.more[string(key)]:
		return fmt.Errorf("%w: the key %s twice", ErrJSON, key)
	}
	k.more[string(key)] = true
	return nil
}

// Known returns the one of names that the quoted key equals, "" if there is none. A key that
// differs from a name in case only is an error: some decoders take it for that name, and the result
// must not depend on the decoder. Like encoding/json's, they may fold the long s and the Kelvin sign
// to letters of ASCII.
func Known(quoted []byte, names ...string) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	for _, name := range names {
		if len(inner) == len(name) {
			if string(inner) == name {
				return name, nil
			}
			if inner[0]|0x20 == name[0]|0x20 && bytes.EqualFold(inner, []byte(name)) {
				return "", fmt.Errorf("%w: the key %s in the place of %s", ErrJSON, quoted, name)
			}
		}
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return "", notFolded(inner, names)
	}
	plain, err := Unquote(quoted)
	if err != nil || bytes.IndexByte(plain, '"') >= 0 {
		return "", err
	}
	return Known(append(append([]byte{'"'}, plain...), '"'), names...)
}

// notFolded returns an error if a key that is not in ASCII differs from one of names in case only.
func notFolded(key []byte, names []string) error {
	if isASCII(key) {
		return nil // Known has compared the names of the same length
	}
	for _, name := range names {
		if bytes.EqualFold(key, []byte(name)) {
			return fmt.Errorf("%w: the key %q in the place of %s", ErrJSON, key, name)
		}
	}
	return nil
}

func isASCII(p []byte) bool {
	for ; len(p) >= 8; p = p[8:] {
		if binary.LittleEndian.Uint64(p)&highs != 0 {
			return false
		}
	}
	for _, b := range p {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// SameKey reports whether a quoted key equals name, however it is escaped.
func SameKey(quoted []byte, name string) bool {
	inner := quoted[1 : len(quoted)-1]
	if len(inner) == len(name) {
		return string(inner) == name
	}
	if len(inner) < len(name) || bytes.IndexByte(inner, '\\') < 0 {
		return false
	}
	text, err := Unquote(quoted)
	return err == nil && string(text) == name
}

// KeyFollows reports whether a quoted key sorts after name, however it is escaped.
func KeyFollows(quoted []byte, name string) bool {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) > name
	}
	text, err := Unquote(quoted)
	return err == nil && string(text) > name
}
