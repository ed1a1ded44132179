package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// network is a bridge with a network namespace for each node on it, as machines on one wire.
type network struct {
	bridge string
	host   string // the test's own address on the wire
	nodes  []*node
}

// startNetwork needs root and what Linux calls network namespaces, bridges and nftables.
func startNetwork(t *testing.T, names ...string) *network {
	t.Helper()
	removeDeadNetworks(t)
	wire := freeWire(t)
	n := &network{bridge: fmt.Sprintf("cv%d", os.Getpid()), host: address(wire, 1)}
	ip(t, "link", "add", n.bridge, "type", "bridge")
	t.Cleanup(func() { ip(t, "link", "del", n.bridge) })
	ip(t, "addr", "add", n.host+"/24", "dev", n.bridge)
	ip(t, "link", "set", n.bridge, "up")
	for i, name := range names {
		n.nodes = append(n.nodes, &node{name: name, netns: fmt.Sprintf("%s-%d", n.bridge, i), address: address(wire, 10+i), pod: fmt.Sprintf("10.244.%d.5", i)})
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
		node.ip(t, "route", "add", "default", "via", n.host)
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

// freeWire returns a /24 that no interface of the host is in: a second run of the tests, and
// one that was killed, have theirs, and two routes to the same addresses lead to the older
// ones' nodes.
func freeWire(t *testing.T) netip.Prefix {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for third := range byte(255) {
		wire := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 201, third, 0}), 24)
		if !slices.ContainsFunc(addresses, func(a net.Addr) bool {
			taken, err := netip.ParsePrefix(a.String())
			return err == nil && taken.Overlaps(wire)
		}) {
			return wire
		}
	}
	t.Fatal("no /24 of 10.201.0.0/16 is free")
	return netip.Prefix{}
}

// address returns a host's one on a wire.
func address(wire netip.Prefix, host int) string {
	a := wire.Addr().As4()
	a[3] = byte(host)
	return netip.AddrFrom4(a).String()
}

// removeDeadNetworks removes what a run left behind that was killed before its cleanup.
func removeDeadNetworks(t *testing.T) {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces { // before the namespaces, whose end takes links with it at a time of its own
		if ofDeadRun(i.Name) {
			ip(t, "link", "del", i.Name)
		}
	}
	namespaces, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		t.Fatalf("ip netns list: %v", err)
	}
	for _, line := range strings.Split(string(namespaces), "\n") {
		if netns, _, _ := strings.Cut(line, " "); ofDeadRun(netns) {
			ip(t, "netns", "del", netns)
		}
	}
}

var networkName = regexp.MustCompile(`^cv([0-9]+)(-[0-9]+)?$`)

// ofDeadRun reports whether startNetwork made a name in a process that has ended.
func ofDeadRun(name string) bool {
	parts := networkName.FindStringSubmatch(name)
	if parts == nil {
		return false
	}
	_, err := os.Stat("/proc/" + parts[1])
	return os.IsNotExist(err)
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
