package e2e

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// peersProgram is command peers.
var peersProgram = kept("peers", ".", "./peers", "go.*", "peers/*.go", "discovery/*.go")

// startPeer starts a server of command peers, and returns its address and what ends it.
func startPeer(t *testing.T, name string) (address string, end func() error) {
	t.Helper()
	program, err := peersProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = new(wiretest.Log)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, cmd.Stderr)
	}
	return strings.TrimSpace(line), func() error {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		return cmd.Wait()
	}
}

// startCluster starts what kubectl needs of a cluster, and returns its API server's address.
func startCluster(t *testing.T) (address string) {
	t.Helper()
	address, _ = startPeer(t, "cluster")
	return address
}
