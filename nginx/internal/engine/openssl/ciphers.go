package openssl

import (
	"crypto/tls"
	"slices"
	"strings"
)

// suite is a cipher suite of crypto/tls before TLS 1.3.
type suite struct {
	id    uint16
	name  string
	safe  bool // crypto/tls offers it without being told to
	words []string
}

// known are the suites that a list can choose.
var known = func() []suite {
	var list []suite
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if name, ok := suites[s.ID]; ok {
			list = append(list, suite{s.ID, name, !s.Insecure, wordsOf(name)})
		}
	}
	return list
}()

// wordsOf returns the words of OpenSSL's cipher lists for all suites of a kind that mean this one.
func wordsOf(name string) []string {
	words := []string{"ALL", "COMPLEMENTOFDEFAULT", "DEFAULT", "PROFILE=SYSTEM"}
	add := func(part string, more ...string) {
		if strings.Contains(name, part) {
			words = append(words, more...)
		}
	}
	if strings.HasPrefix(name, "ECDHE-") {
		words = append(words, "ECDHE", "EECDH", "kECDHE", "kEECDH", "ECDH")
	} else {
		words = append(words, "RSA", "kRSA", "aRSA")
	}
	add("-ECDSA-", "ECDSA", "aECDSA")
	add("ECDHE-RSA-", "aRSA")
	add("AES", "AES", "HIGH")
	add("AES128", "AES128")
	add("AES256", "AES256")
	add("GCM", "AESGCM", "TLSv1.2", "AEAD")
	add("CHACHA20", "CHACHA20", "HIGH", "TLSv1.2", "AEAD")
	add("CBC3", "3DES", "MEDIUM")
	add("RC4", "RC4", "MEDIUM")
	switch {
	case strings.HasSuffix(name, "-SHA"):
		words = append(words, "SHA", "SHA1", "SSLv3", "TLSv1", "TLSv1.0")
	case strings.HasSuffix(name, "-SHA256") && !strings.Contains(name, "GCM"):
		words = append(words, "SHA256", "TLSv1.2")
	}
	return words
}

// others are words for kinds of suites of which crypto/tls has none, or which do not choose any.
var others = []string{
	"COMPLEMENTOFALL", "LOW", "EXP", "EXPORT", "NULL", "eNULL", "aNULL", "MD5", "DES", "IDEA", "SEED", "CAMELLIA", "CAMELLIA128", "CAMELLIA256",
	"ARIA", "ARIA128", "ARIA256", "AESCCM", "AESCCM8", "DH", "EDH", "DHE", "kDHE", "kEDH", "kDH", "kDHr", "kDHd", "aDH", "ADH", "AECDH", "kECDH",
	"kECDHr", "kECDHe", "aECDH", "DSS", "aDSS", "PSK", "kPSK", "aPSK", "kECDHEPSK", "kDHEPSK", "kRSAPSK", "SRP", "kSRP", "aSRP", "GOST", "kGOST", "aGOST", "SHA384",
	"RC2", "FZA", "KRB5", "SUITEB128", "SUITEB192", "CBC",
}

// Ciphers are the suites before TLS 1.3 that a list of OpenSSL chooses.
type Ciphers struct {
	IDs     []uint16 // not nil
	Missing []string // suites that are named, and that crypto/tls does not have
	Matched bool     // a word is known: OpenSSL refuses a list without such
}

// ParseCiphers parses a cipher list of OpenSSL. A word for all suites of a kind, such as HIGH, chooses those that crypto/tls considers
// secure; others must be named each. The order is crypto/tls' own.
func ParseCiphers(list string) Ciphers {
	c := Ciphers{IDs: []uint16{}}
	var never []uint16
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(": ,;", r) }) {
		operator := word[0]
		ids, exact, ok := choose(strings.TrimLeft(word, "!-"), operator == '!' || operator == '-')
		switch operator {
		case '@', '+': // how to sort, a level of security, and what is to be sorted behind the others
		case '!':
			never = append(never, ids...)
			c.remove(ids)
		case '-':
			c.remove(ids)
		default:
			c.Matched = c.Matched || ok
			if exact && ok && len(ids) == 0 {
				c.Missing = append(c.Missing, word)
			}
			c.add(ids)
			c.remove(never)
		}
	}
	return c
}

func (c *Ciphers) add(ids []uint16) {
	for _, id := range ids {
		if !slices.Contains(c.IDs, id) {
			c.IDs = append(c.IDs, id)
		}
	}
}

func (c *Ciphers) remove(ids []uint16) {
	c.IDs = slices.DeleteFunc(c.IDs, func(id uint16) bool { return slices.Contains(ids, id) })
}

// choose returns the suites of a word: the name of a suite, if exact, or kinds joined by a plus sign. unsafe includes those of a kind
// that are not secure.
func choose(word string, unsafe bool) (ids []uint16, exact, ok bool) {
	for id, name := range suites {
		if name != word {
			continue
		}
		if slices.ContainsFunc(known, func(s suite) bool { return s.id == id }) {
			return []uint16{id}, true, true
		}
		return nil, true, true
	}
	kinds := strings.Split(word, "+")
	for _, kind := range kinds {
		if !slices.Contains(others, kind) && !slices.ContainsFunc(known, func(s suite) bool { return slices.Contains(s.words, kind) }) {
			return nil, strings.Contains(word, "-"), strings.Contains(word, "-") && strings.ToUpper(word) == word
		}
	}
	for _, s := range known {
		if (s.safe || unsafe) && !slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(s.words, kind) }) {
			ids = append(ids, s.id)
		}
	}
	return ids, false, true
}

// Groups are those of a key exchange that a list of OpenSSL names.
type Groups struct {
	IDs     []tls.CurveID
	Missing []string // those that crypto/tls does not have
	Unknown string   // a word that is no name, "" if there is none
}

// goGroups are the groups that crypto/tls has.
var goGroups = map[string]tls.CurveID{
	"prime256v1": tls.CurveP256, "secp256r1": tls.CurveP256, "p-256": tls.CurveP256,
	"secp384r1": tls.CurveP384, "p-384": tls.CurveP384,
	"secp521r1": tls.CurveP521, "p-521": tls.CurveP521,
	"x25519": tls.X25519, "x25519mlkem768": tls.X25519MLKEM768,
	"secp256r1mlkem768": tls.SecP256r1MLKEM768, "secp384r1mlkem1024": tls.SecP384r1MLKEM1024,
}

// ParseGroups parses a list of groups, as "X25519:prime256v1". The order is crypto/tls' own.
func ParseGroups(list string) Groups {
	var g Groups
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ':' || r == '/' }) {
		word = strings.TrimLeft(word, "*?")
		id, ok := goGroups[strings.ToLower(word)]
		switch {
		case ok:
			g.IDs = append(g.IDs, id)
		case foreignGroup(word):
			g.Missing = append(g.Missing, word)
		case g.Unknown == "":
			g.Unknown = word
		}
	}
	return g
}

// foreignGroup reports whether OpenSSL has a group of this name.
func foreignGroup(word string) bool {
	for _, name := range groups {
		if strings.EqualFold(name, word) {
			return true
		}
	}
	return strings.HasPrefix(word, "sect") || strings.HasPrefix(word, "secp") || strings.HasPrefix(strings.ToLower(word), "mlkem")
}
