//go:build unix

package command_test

import (
	"path/filepath"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A pid file that cannot be written ends the start before anything is served or any warning is printed, as with nginx: only
// its error is printed.
func TestPIDFileThatCannotBeWritten(t *testing.T) {
	dir := write(t, map[string]string{
		"nginx.conf": "pid no/such/nginx.pid;\nerror_log error.log notice;\nevents {}\n" +
			"http { access_log off; ssl_conf_command a b; server { listen " + wiretest.Free(t) + "; } }\n",
	})
	want := "nginx: [emerg] open() \"" + filepath.Join(dir, "no/such/nginx.pid") + "\" failed (2: No such file or directory)\n"
	if status, stdout, stderr := run("-p", dir, "-c", "nginx.conf"); status != 1 || stdout != "" || stderr != want {
		t.Errorf("status %d, %q %q, want %q", status, stdout, stderr, want)
	}
	if log := (&process{dir: dir}).file("error.log"); log != "" {
		t.Errorf("the error log has %q", log)
	}
}
