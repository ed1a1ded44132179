package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClassesOfEachConfiguration: -t on each configuration of the comparison prints what each
// directive in it is: implemented, a no-op or not followed.
func TestClassesOfEachConfiguration(t *testing.T) {
	directive := regexp.MustCompile(`(?:^|[;{}\n])\s*([a-z][a-z0-9_]*)[ ;]`)
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			s := newSide(t, startCulvert, sc)
			out, err := exec.Command(culvertNginx, "-t", "-p", s.server.dir+"/", "-c", filepath.Join(s.server.dir, "nginx.conf")).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "test is successful") {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
			for _, name := range directive.FindAllStringSubmatch(withoutRows(sc.conf), -1) {
				if name[1] == "x" {
					continue // a string, or an address
				}
				if !regexp.MustCompile(`\b` + name[1] + `\b`).Match(out) {
					t.Errorf("nothing is said of %s", name[1])
				}
			}
		})
	}
}

// withoutRows takes comments, strings and the blocks of maps out.
func withoutRows(conf string) string {
	conf = regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(conf, "")
	conf = regexp.MustCompile(`\{\{\w+\}\}`).ReplaceAllString(conf, "x")
	conf = regexp.MustCompile(`"[^"]*"|'[^']*'`).ReplaceAllString(conf, "x")
	return regexp.MustCompile(`(map|geo|types|split_clients)\s[^{]*\{[^}]*\}|types\s*\{[^}]*\}`).ReplaceAllString(conf, "$1 x; ")
}
