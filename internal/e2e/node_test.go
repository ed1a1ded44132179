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
)

// network is a bridge with a network namespace for each node on it, as machines on one wire.
type network struct {
	bridge string
	nodes  []*node
}

// node is a network namespace with an address on the wire, and one of a pod on its loopback.
type node struct {
	name, netns string
	address     string
	pod         string
}

// hostAddress is the test's own on the wire.
const hostAddress = "10.201.0.1"

// startNetwork needs root and what Linux calls network namespaces, bridges and nftables.
func startNetwork(t *testing.T, names ...string) *network {
	t.Helper()
	n := &network{bridge: fmt.Sprintf("cv%d", os.Getpid())}
	ip(t, "link", "add", n.bridge, "type", "bridge")
	t.Cleanup(func() { ip(t, "link", "del", n.bridge) })
	ip(t, "addr", "add", hostAddress+"/24", "dev", n.bridge)
	ip(t, "link", "set", n.bridge, "up")
	for i, name := range names {
		n.nodes = append(n.nodes, &node{name: name, netns: fmt.Sprintf("%s-%d", n.bridge, i), address: fmt.Sprintf("10.201.0.%d", 10+i), pod: fmt.Sprintf("10.244.%d.5", i)})
	}
	for i, node := range n.nodes {
		port := fmt.Sprintf("%s-%d", n.bridge, i)
		ip(t, "netns", "add", node.netns)
		t.Cleanup(func() { ip(t, "netns", "del", node.netns) })
		ip(t, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", node.netns)
		t.Cleanup(func() { ip(t, "link", "del", port) }) // what has been cut would hold the namespace until its connections give up
		ip(t, "link", "set", port, "master", n.bridge, "up")
		node.ip(t, "link", "set", "lo", "up")
		node.ip(t, "link", "set", "eth0", "up")
		node.ip(t, "addr", "add", node.address+"/24", "dev", "eth0")
		node.ip(t, "addr", "add", node.pod+"/32", "dev", "lo")
		node.ip(t, "route", "add", "default", "via", hostAddress)
	}
	for _, node := range n.nodes {
		for _, other := range n.nodes {
			if other != node {
				node.ip(t, "route", "add", other.pod+"/32", "via", other.address)
			}
		}
	}
	return n
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (n *node) ip(t *testing.T, args ...string) {
	t.Helper()
	ip(t, append([]string{"-n", n.netns}, args...)...)
}

// command is one that runs on the node.
func (n *node) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.netns, program}, args...)...)
}

// start starts a program on the node, and returns what it prints and what stops it.
func (n *node) start(t *testing.T, env []string, program string, args ...string) (log *lockedBuffer, stop func()) {
	t.Helper()
	log = new(lockedBuffer)
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

// asPod makes this test binary a pod, that tells its name on a port, or a client that asks
// for names.
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

// runClient prints the names that thirty connections have come to.
func runClient(target string) int {
	var names []string
	for range 30 {
		conn, err := net.DialTimeout("tcp", target, time.Second)
		if err != nil {
			names = append(names, "nobody")
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

// startPod starts a pod that tells its node's name.
func (n *node) startPod(t *testing.T, port int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.start(t, []string{fmt.Sprintf("%s=%s@%s:%d", asPod, n.name, n.pod, port)}, self)
}

// reaches returns whom the node's connections to an address come to.
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

// expect waits until a node's connections to an address come to those that are wanted, and
// to nobody else.
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
