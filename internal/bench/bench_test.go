package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if serveIfAsked() {
		return
	}
	os.Exit(m.Run())
}

// TestEveryPeerRuns runs each peer for a moment: all of them respond to each work, and
// the table has a row of numbers for each.
func TestEveryPeerRuns(t *testing.T) {
	for _, w := range works() {
		var out strings.Builder
		if err := run(&out, plan{duration: 50 * time.Millisecond, rounds: 2, connections: 4}, w, peers()); err != nil {
			t.Fatal(err)
		}
		checkTable(t, out.String())
	}
}

func checkTable(t *testing.T, table string) {
	t.Helper()
	row := regexp.MustCompile(`^ *(\S.*\S|\S)  +(\d+)  +(\d+\.\d)  +(\d+|-)  +(\d+)  +(\d+)  +(\d+\.\d\d)  +(\d+\.\d\d)  +(\d+\.\d\d) *$`)
	seen := map[string][]string{}
	for line := range strings.Lines(table) {
		if m := row.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			seen[m[1]] = m[2:]
		}
	}
	for _, p := range peers() {
		switch numbers := seen[p.name]; {
		case p.missing != "":
			if !strings.Contains(table, p.name+" is left out: "+p.missing) {
				t.Errorf("nothing says that %s is left out", p.name)
			}
		case numbers == nil:
			t.Errorf("no row for %s in\n%s", p.name, table)
		case numbers[0] == "0" || numbers[1] == "0.0" || numbers[4] == "0":
			t.Errorf("%s did nothing: %v", p.name, numbers)
		case p.name == ourName && numbers[2] == "-":
			t.Errorf("culvert's allocations are not counted: %v", numbers)
		case p.name == tunedName && (numbers[5] != "1.00" || numbers[6] != "1.00" || numbers[7] != "1.00"):
			t.Errorf("the tuned ReverseProxy is not its own measure: %v", numbers)
		}
	}
}

// TestWrongResponses: a peer that does not do the work must not get a number.
func TestWrongResponses(t *testing.T) {
	self, err := startSelf("ReverseProxy", "127.0.0.1:1") // no server listens there: 502
	if err != nil {
		t.Fatal(err)
	}
	defer self.stop()
	if _, err := load(self.address, works()[0], 1, time.Millisecond); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("a peer that responds with 502: error %v", err)
	}
}

// TestEveryTunnelPeerRuns runs each peer's WebSockets for a moment.
func TestEveryTunnelPeerRuns(t *testing.T) {
	var out strings.Builder
	plan := tunnelPlan{duration: 50 * time.Millisecond, rounds: 1, connections: 4, idle: 10, rate: 1000}
	if err := runTunnels(&out, plan, tunnelPeers()); err != nil {
		t.Fatal(err)
	}
	for _, p := range tunnelPeers() {
		if want := p.name + "  "; p.missing == "" && !strings.Contains(out.String(), want) {
			t.Errorf("no row for %s in\n%s", p.name, out.String())
		}
	}
}

// TestHoldTunnels holds a few tunnels. The drain sends each a Close frame.
func TestHoldTunnels(t *testing.T) {
	var out strings.Builder
	if err := holdTunnels(&out, 40); err != nil {
		t.Fatalf("%v after\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "drain: 40 in ") {
		t.Errorf("the drain is not reported:\n%s", out.String())
	}
}

// TestGateways runs nginx and the example for a moment with each configuration.
func TestGateways(t *testing.T) {
	var out strings.Builder
	if err := runGateways(&out, plan{duration: 50 * time.Millisecond, rounds: 1, connections: 4}, ""); err != nil {
		t.Fatalf("%v after\n%s", err, out.String())
	}
	for _, g := range gatewayWorks() {
		if !strings.Contains(out.String(), g.name+"  ") {
			t.Errorf("no row for %s in\n%s", g.name, out.String())
		}
	}
}

// BenchmarkLoad500Servers is examples/nginx -t on a configuration of 500 servers.
func BenchmarkLoad500Servers(b *testing.B) {
	program, err := exampleProgram()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(manyServers(500)), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if out, err := exec.Command(program, "-t", "-q", "-p", dir, "-c", "nginx.conf", "-e", "stderr").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestGoals prints the table after moments: a line for each goal.
func TestGoals(t *testing.T) {
	var out strings.Builder
	if err := runGoals(&out, plan{duration: 50 * time.Millisecond, rounds: 1, connections: 4, idle: 50}); err != nil {
		t.Fatalf("%v after\n%s", err, out.String())
	}
	for _, g := range goals() {
		line := regexp.QuoteMeta(g.work) + ` +` + regexp.QuoteMeta(g.what) + ` +` + regexp.QuoteMeta(g.ours) + ` \S+ +` + regexp.QuoteMeta(g.against) + ` +\S`
		if !regexp.MustCompile(line).MatchString(out.String()) {
			t.Errorf("no row for %s against %s in\n%s", g.work, g.against, out.String())
		}
	}
}
