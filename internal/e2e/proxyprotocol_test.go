package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

const proxiedNginxConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}} proxy_protocol; return 200 "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port"; } }
`

const proxiedTLSConf = `http { access_log off; default_type text/plain;
server { listen {{LISTEN}} ssl proxy_protocol; ssl_certificate first.example.pem; ssl_certificate_key first.example.key;
return 200 "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port"; } }
`

const proxiedHAProxyConf = `global
	maxconn 100
defaults
	mode http
	timeout client 1m
	timeout server 1m
	timeout connect 1m
frontend f
	bind %s accept-proxy
	http-request return status 200 content-type text/plain lf-string "%%[src] %%[src_port] %%[dst] %%[dst_port]"
`

// Debian's nginx and HAProxy read the client's address in the header of a group's connections.
func TestProxyProtocolOut(t *testing.T) {
	peers := map[string]func(t *testing.T) (addr, scheme string){
		"nginx": func(t *testing.T) (string, string) { return startNginx(t, proxiedNginxConf, nil).address, "http" },
		"nginx, TLS": func(t *testing.T) (string, string) {
			return startNginx(t, proxiedTLSConf, authority.files).address, "https"
		},
		"HAProxy": func(t *testing.T) (string, string) { return startHAProxy(t), "http" },
	}
	for name, start := range peers {
		for _, version := range []upstream.ProxyProtocol{upstream.ProxyProtocolV1, upstream.ProxyProtocolV2} {
			t.Run(fmt.Sprint(name, " ", version), func(t *testing.T) {
				addr, scheme := start(t)
				changes := make(chan error, 100)
				group, err := upstream.New(upstream.Options{Scheme: scheme, ProxyProtocol: version,
					TLSConfig: &tls.Config{InsecureSkipVerify: true},
					Check: &upstream.Check{Path: "/", Interval: 10 * time.Millisecond, Fall: 1, OnChange: func(_ string, healthy bool, err error) {
						if !healthy {
							changes <- err
						}
					}}}, upstream.Target{Addr: addr})
				if err != nil {
					t.Fatal(err)
				}
				defer group.Close()
				p, err := proxy.New(proxy.Options{Upstream: group})
				if err != nil {
					t.Fatal(err)
				}
				front := wiretest.Serve(t, p)
				for range 2 {
					c := wiretest.Dial(t, front)
					for range 2 {
						c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
						resp, got := c.Response("GET")
						from, to := c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)
						want := fmt.Sprintf("%v %d %v %d", from.IP, from.Port, to.IP, to.Port)
						if resp.StatusCode != http.StatusOK || got != want {
							t.Errorf("%d %q, want %q", resp.StatusCode, got, want)
						}
					}
					c.Close()
				}
				select {
				case err := <-changes:
					t.Errorf("a check has failed: %v", err)
				default:
				}
			})
		}
	}
}

// startHAProxy starts Debian's HAProxy, whose responses have the addresses of the header.
func startHAProxy(t *testing.T) (addr string) {
	t.Helper()
	addr, dir := wiretest.Free(t), t.TempDir()
	writeFiles(t, dir, map[string]string{"haproxy.cfg": fmt.Sprintf(proxiedHAProxyConf, addr)})
	startListening(t, addr, "haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	return addr
}

// startListening starts a program of Debian's that listens on addr.
func startListening(t *testing.T, addr, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		path = "/usr/sbin/" + program
	}
	cmd := exec.Command(path, args...)
	output := &wiretest.Log{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s is needed (see .ci/run): %v", program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	waitFor(t, program+" to listen", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v\n%s", program, err, output)
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}
