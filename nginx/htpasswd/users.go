package htpasswd

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/tg123/go-htpasswd"
)

// users are the users of a file.
type users struct {
	of    map[string]htpasswd.EncodedPasswd // nil for a hash that is not understood
	first htpasswd.EncodedPasswd            // the first that is understood, nil if there is none
}

// parse parses a file as ngx_http_auth_basic_handler does: the first line of a user counts, and no spaces are removed.
func parse(text string) users {
	u := users{of: map[string]htpasswd.EncodedPasswd{}}
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "\r")
		user, rest, ok := strings.Cut(line, ":")
		if _, known := u.of[user]; !ok || known || user == "" || user[0] == '#' {
			continue
		}
		hash, _, _ := strings.Cut(rest, ":")
		u.of[user] = understand(hash)
		if u.first == nil {
			u.first = u.of[user]
		}
	}
	return u
}

// match reports whether the password is the user's. For an unknown user it takes as long as for another one, so that the
// names can't be found out by the time.
func (u users) match(user, password string) bool {
	hash, known := u.of[user]
	if hash != nil {
		return hash.MatchesPassword(password)
	}
	if !known && u.first != nil {
		u.first.MatchesPassword(password)
	}
	return false
}

// kinds are the hashes that are understood.
var kinds = []htpasswd.PasswdParser{plain, htpasswd.AcceptMd5, htpasswd.AcceptSha, htpasswd.AcceptSsha, htpasswd.AcceptBcrypt, htpasswd.AcceptCryptSha}

// understand returns nil for a hash that is not understood.
func understand(hash string) htpasswd.EncodedPasswd {
	for _, kind := range kinds {
		if matcher, err := kind(hash); err != nil || matcher != nil {
			return matcher
		}
	}
	return nil
}

// plainPassword is the hash of a password that is in the file as it is.
type plainPassword [sha256.Size]byte

// plain parses "{PLAIN}password". That of package htpasswd accepts any text.
func plain(s string) (htpasswd.EncodedPasswd, error) {
	password, ok := strings.CutPrefix(s, "{PLAIN}")
	if !ok {
		return nil, nil
	}
	return plainPassword(sha256.Sum256([]byte(password))), nil
}

// MatchesPassword implements htpasswd.EncodedPasswd.
func (p plainPassword) MatchesPassword(password string) bool {
	got := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(got[:], p[:]) == 1
}
