package htpasswd

import (
	"strings"
	"testing"
)

// The first line of a user counts, up to its next colon; comments, and lines without a user or a colon, do not.
func TestLines(t *testing.T) {
	u := parse("# plain:{PLAIN}a\n#hidden:{PLAIN}a\n:{PLAIN}a\nno colon\nplain:{PLAIN}a:a comment\nplain:{PLAIN}b\r\n" +
		"unknown:xy7f2\nunknown:{PLAIN}a\ncr:{PLAIN}a\r\n spaced:{PLAIN}a \nprefix:{PLAIN}{PLAIN}a\nempty:{PLAIN}\nbroken:{SHA}!\nend:{PLAIN}a")
	for credentials, want := range map[string]bool{
		"plain:a": true, "plain:b": false, "plain:": false, "plain:{PLAIN}a": false, "plain:a:a comment": false,
		"cr:a": true, "cr:a\r": false, "empty:": true, "empty:a": false, "end:a": true,
		"spaced:a": false, " spaced:a ": true, " spaced:a": false,
		"prefix:a": false, "prefix:{PLAIN}a": true,
		"unknown:a": false, "unknown:xy7f2": false, "broken:!": false,
		"# plain:a": false, "#hidden:a": false, "hidden:a": false, ":a": false, "no colon:": false, "nobody:a": false,
	} {
		user, password, _ := strings.Cut(credentials, ":")
		if got := u.match(user, password); got != want {
			t.Errorf("%q: %v", credentials, got)
		}
	}
}

// counted is a hash that counts how often a password is compared with it.
type counted int

func (c *counted) MatchesPassword(string) bool { *c++; return true }

// For an unknown user as much is computed as for a known one.
func TestUnknownUserTakesAsLong(t *testing.T) {
	u := parse("unknown:xy7f2\na:{PLAIN}a\n")
	var hash counted
	u.of["a"], u.first = &hash, &hash
	if !u.match("a", "b") || u.match("nobody", "b") || hash != 2 {
		t.Errorf("%d comparisons", hash)
	}
	if parse("").match("nobody", "") || parse("unknown:xy7f2").match("nobody", "") {
		t.Error("an unknown user matches")
	}
}

// Of any file a user can log in only by a line of the file that begins with the name, and a comment is none.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a:{PLAIN}b", "a:{SHA}6ciwqLm0BUU6ZyrYGRzTWdFjpNM=:comment", "#a:b", "a:$apr1$x$", "a:$5$rounds=1000$a$", "a:$2y$04$", "a:{SSHA}", "\n:\r\n:", "a:$1$$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "rounds=") || strings.Contains(text, "$2") {
			return // it may need minutes of work, which is the owner's to choose
		}
		u := parse(text)
		for user := range u.of {
			if user == "" || user[0] == '#' || strings.ContainsAny(user, ":\r\n") || !strings.Contains("\n"+text, "\n"+user+":") {
				t.Errorf("user %q", user)
			}
			u.match(user, "b")
		}
		if u.match("not in the file", "b") && !strings.Contains(text, "not in the file:") {
			t.Error("an unknown user matches")
		}
	})
}
