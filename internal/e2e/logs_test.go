package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// volatile are the parts of a log line that differ from run to run.
var volatile = regexp.MustCompile(`\d{2}/\w{3}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}|\b\d+\.\d{3}\b`)

// compareLogs compares the access logs of the two, line by line.
func compareLogs(t *testing.T, name string, theirs, ours *side) {
	t.Helper()
	read := func(s *side) []string {
		content, err := os.ReadFile(filepath.Join(s.server.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(volatile.ReplaceAllString(s.unfill(string(content)), "*"), "\n")
	}
	var a, b []string
	waitFor(t, "the log lines", func() bool {
		a, b = read(theirs), read(ours)
		return len(a) == len(b)
	})
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("line %d\nnginx:   %s\nculvert: %s", i+1, a[i], b[i])
		}
	}
}
