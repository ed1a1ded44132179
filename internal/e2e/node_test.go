package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// node is a network namespace with an address on the wire, and one of a pod on its loopback.
type node struct {
	name, netns string
	address     string
	pod         string
}

// command is one that runs on the node.
func (n *node) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.netns, program}, args...)...)
}

// start starts a program on the node, and returns what it prints and what stops it.
func (n *node) start(t *testing.T, env []string, program string, args ...string) (log *wiretest.Log, stop func()) {
	t.Helper()
	log = new(wiretest.Log)
	cmd := n.command(context.Background(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			lines := strings.Split(log.String(), "\n")
			t.Logf("%s of %s:\n%s", program, n.name, strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	})
	return log, stop
}

// asPod makes this test binary a pod, which sends its name to each connection, or a client that reads
// names.
const asPod = "CULVERT_TEST_AS_POD"

func runPod() int {
	name, target, _ := strings.Cut(os.Getenv(asPod), "@")
	if name == "client" {
		return runClient(target)
	}
	l, err := net.Listen("tcp", target)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return 1
		}
		_, _ = io.WriteString(conn, name)
		conn.Close()
	}
}

// runClient prints the names of the servers that thirty connections reach.
func runClient(target string) int {
	var names []string
	for range 30 {
		conn, err := net.DialTimeout("tcp", target, time.Second)
		if err != nil {
			names = append(names, "none")
			break
		}
		name, err := io.ReadAll(conn)
		conn.Close()
		if err != nil {
			names = append(names, err.Error())
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	fmt.Println(strings.Join(slices.Compact(names), " "))
	return 0
}

// startPod starts a pod that sends its node's name.
func (n *node) startPod(t *testing.T, port int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.start(t, []string{fmt.Sprintf("%s=%s@%s:%d", asPod, n.name, n.pod, port)}, self)
}

// reaches returns the pods that the node's connections to an address reach.
func (n *node) reaches(t *testing.T, address string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := n.command(t.Context(), self)
	cmd.Env = append(os.Environ(), asPod+"=client@"+address)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// expect waits until a node's connections to an address reach the wanted pods, and no others.
func (n *node) expect(t *testing.T, address, want string) {
	t.Helper()
	got := ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if got = n.reaches(t, address); got == want {
			return
		}
	}
	t.Errorf("%s reaches %q, want %q", n.name, got, want)
}
