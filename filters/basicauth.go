package filters

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/record"
)

// BasicAuthOptions configures BasicAuth. One of Users and Check is required, and not both.
type BasicAuthOptions struct {
	// Realm is the name of what is protected, which browsers show: UTF-8 without control characters. Required.
	Realm string
	// Users are the passwords of the users. They are compared in a time that depends on neither. A user name
	// can't have a colon.
	Users map[string]string
	// Check reports whether the password is the user's. It must compare in constant time and be safe for
	// concurrent use, and a panic of it is the handler's. If it returns an error, the client is refused with
	// 500. r is the request, whose body must not be read. The method Check of
	// github.com/culvert-go/culvert/nginx/htpasswd.File checks by a file.
	Check func(r *http.Request, user, password string) (bool, error)
	// KeepAuthorization passes the header field Authorization on to the next handler. Without it targets do
	// not learn the passwords.
	KeepAuthorization bool
}

// BasicAuth returns a filter that requires a user and a password (RFC 7617). A request without them, or with wrong ones, is
// refused with 401 and a challenge in WWW-Authenticate, which asks for UTF-8. So is one whose user or password has control
// characters or is not UTF-8, and one with several Authorization fields, of which a target might take another one.
//
// The user is in Result.User then, which ResultFrom returns to the handlers inside of the filter, and which AccessLog
// and CombinedLog write. The name of a user that was refused is not in it. An error of Check is Result.Err, as a culvert.Error
// of the kind Internal.
//
// Security: use it over TLS only, since each request carries the password. A password can be guessed as fast as requests are
// served: a RateLimit outside of the filter bounds that, and what costly hashes take of the CPU. Browsers send the
// password with the requests of other sites' pages, too: it is no defence against cross-site request forgery. A CORS
// preflight has no password: a filter that responds to it belongs outside.
//
// BasicAuth returns an error if the realm or a user name is not valid, or if not one of Users and Check is set.
func BasicAuth(o BasicAuthOptions) (culvert.Filter, error) {
	if o.Realm == "" || !validCredential(o.Realm) {
		return nil, errors.New("filters: BasicAuth: BasicAuthOptions.Realm is empty or has invalid characters")
	}
	if (len(o.Users) == 0) == (o.Check == nil) {
		return nil, errors.New("filters: BasicAuth: one of BasicAuthOptions.Users and Check is required, and not both")
	}
	if o.Check == nil {
		for user := range o.Users {
			if user == "" || strings.Contains(user, ":") || !validCredential(user) {
				return nil, fmt.Errorf("filters: BasicAuth: invalid user name %q", user)
			}
		}
		o.Check = checkUsers(o.Users)
	}
	b := &basicAuth{check: o.Check, keep: o.KeepAuthorization,
		challenge: `Basic realm="` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(o.Realm) + `", charset="UTF-8"`}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(w, r, next) })
	}, nil
}

// basicAuth is the state of a BasicAuth.
type basicAuth struct {
	check     func(r *http.Request, user, password string) (bool, error)
	keep      bool
	challenge string
}

func (b *basicAuth) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	user, ok, err := b.authenticate(w, r)
	switch {
	case err != nil:
		if recorder := record.From(r.Context()); recorder != nil {
			recorder.Err = &culvert.Error{Kind: culvert.Internal, Err: fmt.Errorf("filters: BasicAuth: %w", err)}
		}
		refuse(w, r, http.StatusInternalServerError)
	case !ok:
		w.Header().Set("WWW-Authenticate", b.challenge)
		refuse(w, r, http.StatusUnauthorized)
	default:
		r, recorder := record.ForRequest(r)
		recorder.User = user
		if !b.keep {
			inner := *r
			inner.Header = maps.Clone(r.Header) // outer filters keep theirs
			delete(inner.Header, "Authorization")
			r = &inner
		}
		next.ServeHTTP(w, r)
	}
}

// authenticate returns the user of r, if the password is the user's.
func (b *basicAuth) authenticate(w http.ResponseWriter, r *http.Request) (user string, ok bool, err error) {
	user, password, ok := header.BasicAuth(r)
	if !ok || len(r.Header["Authorization"]) > 1 || !validCredential(user) || !validCredential(password) {
		return "", false, nil
	}
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	ok, err = b.check(r, user, password)
	returned = true
	return user, ok, err
}

// validCredential reports whether s may be a user name, a password or a realm: RFC 7617 section 2.
func validCredential(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkUsers returns a Check for passwords. It compares hashes, whose time does not depend on the lengths, and those of an
// unknown user with a password that none has.
func checkUsers(users map[string]string) func(*http.Request, string, string) (bool, error) {
	hashes := make(map[string][sha256.Size]byte, len(users))
	for user, password := range users {
		hashes[user] = sha256.Sum256([]byte(password))
	}
	return func(_ *http.Request, user, password string) (bool, error) {
		want, known := hashes[user]
		got := sha256.Sum256([]byte(password))
		return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && known, nil
	}
}
