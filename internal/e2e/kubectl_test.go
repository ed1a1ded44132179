package e2e

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// kubectl is kubectl's command line against the address, over one of its protocols.
func kubectl(t *testing.T, address, webSockets string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := peersProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"kubectl", "--server", "http://" + address, "--cache-dir", t.TempDir()}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent", "HOME="+t.TempDir(),
		"KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+webSockets, "KUBECTL_PORT_FORWARD_WEBSOCKETS="+webSockets)
	return cmd
}

// kubernetesGateway stands in front of a cluster, and returns the protocols of the streams through
// it.
func kubernetesGateway(t *testing.T) (address string, protocols func() []string) {
	t.Helper()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: startCluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	tunnels, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"websocket", "SPDY/3.1"}, Dial: group.Dial, Registry: tunnels})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Upstream: group, Upgrades: upgrades})
	if err != nil {
		t.Fatal(err)
	}
	seen := &wiretest.Log{}
	s := httptest.NewServer(filters.NewChain().ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		if protocol := upgrades.Protocol(r); protocol != "" {
			_, _ = seen.Write([]byte(protocol + " "))
		}
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), func() []string { return strings.Fields(seen.String()) }
}

// overBoth runs a test over both of kubectl's protocols.
func overBoth(t *testing.T, test func(t *testing.T, address, webSockets string)) {
	for protocol, webSockets := range map[string]string{"websocket": "true", "SPDY/3.1": "false"} {
		t.Run(protocol, func(t *testing.T) {
			address, protocols := kubernetesGateway(t)
			test(t, address, webSockets)
			for _, got := range protocols() {
				if got != protocol {
					t.Errorf("kubectl spoke %s", got)
				}
			}
			if len(protocols()) == 0 {
				t.Error("kubectl has not streamed")
			}
		})
	}
}

// TestKubectlExec runs kubectl exec -it in a terminal of 80x20: the shell knows its size
// before its first prompt (the incident of the first frame), and the command's status
// arrives.
func TestKubectlExec(t *testing.T) {
	overBoth(t, func(t *testing.T, address, webSockets string) {
		cmd := kubectl(t, address, webSockets, "exec", "-it", "pod", "--", "shell")
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 20})
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		r := bufio.NewReader(terminal)
		expect(t, r, "80x20 $ ")
		_, _ = io.WriteString(terminal, "hello\r")
		expect(t, r, "hello: not found")
		if err := pty.Setsize(terminal, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
			t.Fatal(err)
		}
		expect(t, r, "100x30")
		_, _ = io.WriteString(terminal, "exit 7\r")
		expect(t, r, "command terminated with exit code 7")
		if err := cmd.Wait(); err == nil {
			t.Error("kubectl has not received the status")
		}
	})
}

// TestKubectlAttach sends a megabyte through kubectl attach and gets it back: the end of
// the input is passed on, and the output arrives after it.
func TestKubectlAttach(t *testing.T) {
	overBoth(t, func(t *testing.T, address, webSockets string) {
		cmd := kubectl(t, address, webSockets, "attach", "-i", "-q", "pod")
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		cmd.Stdin = bytes.NewReader(sent)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil || !bytes.Equal(out.Bytes(), sent) {
			t.Errorf("%d bytes of %d came back: %v\n%s", out.Len(), len(sent), err, errOut.String())
		}
	})
}

// TestKubectlPortForward reaches a port of the pod, over several connections.
func TestKubectlPortForward(t *testing.T) {
	overBoth(t, func(t *testing.T, address, webSockets string) {
		cmd := kubectl(t, address, webSockets, "port-forward", "pod/pod", ":7")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		errOut := &wiretest.Log{}
		cmd.Stderr = errOut
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		line, err := bufio.NewReader(stdout).ReadString('\n')
		_, after, _ := strings.Cut(line, "Forwarding from ")
		local, _, found := strings.Cut(after, " -> 7")
		if !found {
			t.Fatalf("kubectl said %q: %v\n%s", line, err, errOut)
		}
		for range 3 {
			conn, err := net.Dial("tcp", local)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, "knock")
			_ = conn.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(conn); string(got) != "port 7 heard knock" {
				t.Errorf("got %q: %v", got, err)
			}
			conn.Close()
		}
	})
}

// expect reads until text has arrived.
func expect(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	var seen strings.Builder
	for !strings.HasSuffix(seen.String(), text) {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatalf("no %q in %q: %v", text, seen.String(), err)
		}
		seen.WriteByte(b)
	}
}
