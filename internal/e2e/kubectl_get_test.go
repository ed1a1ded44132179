package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/e2e/discovery"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestKubectlGetWatch runs kubectl get -w through the filter: what is hidden does not
// show, what comes into sight does, as the table that kubectl makes of objects and as
// JSON.
func TestKubectlGetWatch(t *testing.T) {
	for output, line := range map[string]string{"": "%s", "json": `"name": "%s"`, "name": "pod/%s"} {
		t.Run("output "+output, func(t *testing.T) {
			server := podServer(t, false)
			mux := http.NewServeMux()
			discovery.Handle(mux)
			mux.Handle("/api/v1/", server)
			gateway := filteredGateway(t, mux)
			server.Set(somePod(1, 1, false))
			server.Set(somePod(2, 1, true))
			args := []string{"get", "pods", "-n", "shop", "-w"}
			if output != "" {
				args = append(args, "-o", output)
			}
			r, seen := startWatching(t, kubectl(t, gateway.Listener.Addr().String(), "true", args...))
			expect(t, r, fmt.Sprintf(line, "pod-01"))
			server.Set(somePod(3, 1, true))
			server.Set(somePod(4, 1, false))
			expect(t, r, fmt.Sprintf(line, "pod-04"))
			server.Set(somePod(2, 2, false))
			expect(t, r, fmt.Sprintf(line, "pod-02"))
			if strings.Contains(seen.String(), "pod-03") || strings.Contains(seen.String(), "managedFields") {
				t.Errorf("kubectl shows what is hidden:\n%s", seen)
			}
		})
	}
}

// startWatching starts a kubectl that does not end by itself. seen is all that was read.
func startWatching(t *testing.T, cmd *exec.Cmd) (r *bufio.Reader, seen *strings.Builder) {
	t.Helper()
	var complaints wiretest.Log
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("kubectl says %s", complaints.String())
		}
	})
	seen = new(strings.Builder)
	return bufio.NewReader(io.TeeReader(out, seen)), seen
}
