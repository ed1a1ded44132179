package htpasswd_test

import (
	"errors"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/htpasswd"
)

// hashes are those of the password "secret", which openssl-passwd and htpasswd have made.
const hashes = `md5:$1$saltsalt$9xy1btjgzLYfb7hivXtC//
apr1:$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0
sha256:$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA
sha512:$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1
sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=
ssha:{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0
bcrypt:$2y$04$vHW4xdTMLrifrqpa7.DfO.57HiLKrO254ctJ2LAgjT3V0plPqX1K6
plain:{PLAIN}secret
`

// write writes the file with a time of modification, which the clock of a file system may not tell apart.
func write(t *testing.T, name, text string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, modified, modified); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, name string) *htpasswd.File {
	t.Helper()
	f, err := htpasswd.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestHashes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "users")
	write(t, name, hashes, time.Unix(1e9, 0))
	f := open(t, name)
	for _, user := range []string{"md5", "apr1", "sha256", "sha512", "sha", "ssha", "bcrypt", "plain"} {
		for password, want := range map[string]bool{"secret": true, "Secret": false, "secret ": false, "": false} {
			if got, err := f.Check(nil, user, password); got != want || err != nil {
				t.Errorf("%s with %q: %v, %v", user, password, got, err)
			}
		}
	}
}

// A change of the file counts with the next request, and without the file there is an error.
func TestFileChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "users")
	if f, err := htpasswd.Open(name); f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if f, err := htpasswd.Open(filepath.Dir(name)); f != nil || err == nil {
		t.Errorf("a folder: %v", err)
	}
	write(t, name, "a:{PLAIN}first", time.Unix(1e9, 0))
	f := open(t, name)
	check := func(password string, want bool) {
		t.Helper()
		if got, err := f.Check(nil, "a", password); got != want || err != nil {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}
	check("first", true)
	write(t, name, "a:{PLAIN}other", time.Unix(1e9, 1)) // of the same size
	check("first", false)
	check("other", true)
	write(t, name, "a:{PLAIN}another", time.Unix(1e9, 1)) // of the same time
	check("other", false)
	check("another", true)
	write(t, name, "", time.Unix(1e9, 2))
	check("another", false)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Check(nil, "a", "another"); got || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v, %v", got, err)
	}
	write(t, name, "a:{PLAIN}back", time.Unix(1e9, 3))
	check("back", true)
}

// As the Check of BasicAuth, the file decides, and a request fails if it can't be read.
func TestBasicAuth(t *testing.T) {
	name := filepath.Join(t.TempDir(), "users")
	write(t, name, hashes, time.Unix(1e9, 0))
	auth, err := filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Check: open(t, name).Check})
	if err != nil {
		t.Fatal(err)
	}
	h := auth(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	status := func(password string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("apr1", password)
		h.ServeHTTP(w, r)
		return w.Code
	}
	if right, wrong := status("secret"), status("wrong"); right != 200 || wrong != 401 {
		t.Errorf("status %d, with a wrong password %d", right, wrong)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got := status("secret"); got != 500 {
		t.Errorf("status %d without the file", got)
	}
}

// The users are in a file that htpasswd(1) has written.
func Example() {
	users, err := htpasswd.Open("/etc/gateway/users")
	if err != nil {
		log.Fatal(err)
	}
	auth, err := filters.BasicAuth(filters.BasicAuthOptions{Realm: "administration", Check: users.Check})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/admin/", auth(http.NotFoundHandler()))
}
