// Package htpasswd checks passwords by the files that htpasswd(1) and openssl-passwd(1) write and nginx's
// auth_basic_user_file reads. Each line is "user:hash" or "user:hash:comment". The hashes are bcrypt ($2y$), SHA-256 and
// SHA-512 ($5$, $6$), Apache's MD5 ($apr1$), MD5 ($1$), {SHA}, {SSHA} and {PLAIN}. A user whose hash is of another kind,
// traditional DES for instance, can't log in.
package htpasswd

import (
	"net/http"
	"os"
	"sync"
	"time"
)

// File is a file of users and their passwords. It is read again when its time of modification or its size has changed. It is
// safe for concurrent use by multiple goroutines.
type File struct {
	name string

	mu       sync.Mutex
	users    users
	modified time.Time
	size     int64
}

// Open reads the named file. It returns an error if that fails. Lines that are not understood are skipped.
func Open(name string) (*File, error) {
	f := &File{name: name}
	if _, err := f.current(); err != nil {
		return nil, err
	}
	return f, nil
}

// Check reports whether the file has the user with the password. It returns an error if the file has changed and can't be
// read. It is a filters.BasicAuthOptions.Check.
//
// The time that it takes is that of the user's hash, and for an unknown user that of the first one in the file: a bcrypt
// hash of the usual cost takes the CPU for about 50 milliseconds, with each request.
func (f *File) Check(_ *http.Request, user, password string) (bool, error) {
	users, err := f.current()
	if err != nil {
		return false, err
	}
	return users.match(user, password), nil
}

// current returns the users of the file as it is now.
func (f *File) current() (users, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	if err != nil {
		return users{}, err
	}
	if f.users.of != nil && f.modified.Equal(info.ModTime()) && f.size == info.Size() {
		return f.users, nil
	}
	text, err := os.ReadFile(f.name)
	if err != nil {
		return users{}, err
	}
	f.users, f.modified, f.size = parse(string(text)), info.ModTime(), info.Size()
	return f.users, nil
}
