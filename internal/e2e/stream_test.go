package e2e

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// streamConf is what people have around stream, and its corners. Each server listens at a unix socket of its name; {{TCP}} and
// {{UDP}} are addresses, and {{UP}} is that of a target of TCP, which sends back what it has received when the sender has ended.
const streamConf = `load_module /usr/lib/nginx/modules/ngx_stream_module.so;
error_log error.log info; events {}
stream {
  log_format all "$protocol $status $remote_addr $bytes_received $bytes_sent $upstream_addr $upstream_bytes_sent $upstream_bytes_received";
  log_format some "$protocol $status $remote_addr $upstream_addr"; # nginx 1.22 does not count what was preread
  access_log stream.log all;
  ssl_protocols TLSv1.2 TLSv1.3; proxy_ssl_protocols TLSv1.2 TLSv1.3; proxy_ssl_session_reuse off;
  limit_conn_zone $server_addr zone=addr:1m;
  map $remote_addr $mapped { default other; "~^unix:" "over unix"; }
  map $ssl_preread_server_name $chosen { upstream.example unix:{{DIR}}/tls; "" {{UP}}; default unix:{{DIR}}/none; }
  geo $remote_addr $network { ranges; default d; 0.0.0.0-255.255.255.254 a; }
  split_clients $remote_addr $half { 50% one; * two; }
  upstream two { server 127.0.0.1:1; server {{UP}} backup; }
  upstream again { server 127.0.0.1:1; server {{UP}} backup; }
  upstream none { server 127.0.0.1:1 down; }
  upstream hashed { hash $remote_addr; server {{UP}}; server 127.0.0.1:1 down; }
  server { listen {{LISTEN}}; access_log off; return ready; }
  server { listen unix:{{DIR}}/return; set $a "$mapped, $network, $half"; return "$a $protocol $server_addr"; }
  server { listen unix:{{DIR}}/empty; return ""; }
  server { listen unix:{{DIR}}/proxy; proxy_half_close on; proxy_pass {{UP}}; }
  server { listen unix:{{DIR}}/end; proxy_pass {{UP}}; }
  server { listen unix:{{DIR}}/next; proxy_half_close on; proxy_pass two; }
  server { listen unix:{{DIR}}/one; proxy_next_upstream_tries 1; proxy_pass again; }
  server { listen unix:{{DIR}}/down; proxy_pass none; }
  server { listen unix:{{DIR}}/hash; proxy_half_close on; proxy_pass hashed; }
  server { listen unix:{{DIR}}/deny; deny unix:; proxy_pass {{UP}}; }
  server { listen unix:{{DIR}}/allow; allow unix:; deny all; return allowed; }
  server { listen unix:{{DIR}}/limit; limit_conn addr 1; limit_conn_dry_run on; return "$limit_conn_status"; }
  server { listen unix:{{DIR}}/header proxy_protocol; set_real_ip_from unix:;
    return "$remote_addr $remote_port $proxy_protocol_addr $proxy_protocol_server_addr $proxy_protocol_server_port $realip_remote_addr"; }
  server { listen unix:{{DIR}}/untrusted proxy_protocol; return "$remote_addr $proxy_protocol_addr"; }
  server { listen unix:{{DIR}}/sent; proxy_half_close on; proxy_protocol on; proxy_pass {{UP}}; }
  server { listen {{TCP}} proxy_protocol; listen unix:{{DIR}}/passed-on proxy_protocol; set_real_ip_from 127.0.0.1; set_real_ip_from unix:; proxy_half_close on; proxy_protocol on; proxy_pass {{UP}}; }
  server { listen unix:{{DIR}}/preread; access_log stream.log some; ssl_preread on; proxy_half_close on; proxy_pass $chosen; }
  server { listen unix:{{DIR}}/small; ssl_preread on; preread_buffer_size 16; return text; }
  server { listen unix:{{DIR}}/tls ssl; access_log off; ssl_certificate upstream.example.pem; ssl_certificate_key upstream.example.key; return "$ssl_server_name $ssl_protocol $ssl_client_verify $ssl_session_reused"; }
  server { listen unix:{{DIR}}/inner; access_log stream.log some; proxy_ssl on; proxy_ssl_server_name on; proxy_ssl_name b.example; proxy_pass unix:{{DIR}}/tls; }
  server { listen unix:{{DIR}}/verified; access_log stream.log some; proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name upstream.example; proxy_pass unix:{{DIR}}/tls; }
  server { listen unix:{{DIR}}/wrong; access_log stream.log some; proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name b.example; proxy_pass unix:{{DIR}}/tls; }
  server { listen {{UDP}} udp; proxy_requests 1; proxy_responses 1; proxy_pass {{UDP2}}; }
  server { listen {{UDP2}} udp; access_log off; return "$protocol $server_addr"; }
}
`

const (
	header1 = "PROXY TCP4 192.0.2.7 192.0.2.8 9 10\r\n"
	header2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x24" + "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02" + "\x00\x01\x00\x02"
)

// streamSteps are the socket and what is sent there.
var streamSteps = [][2]string{
	{"return", ""}, {"empty", ""}, {"proxy", "some bytes"}, {"proxy", strings.Repeat("many bytes ", 100000)}, {"end", "lost"},
	{"next", "bytes"}, {"one", ""}, {"down", ""}, {"hash", "bytes"}, {"deny", ""}, {"allow", ""}, {"limit", ""},
	{"header", header1}, {"header", header2}, {"header", "PROXY UNKNOWN\r\n"}, {"header", "GET / HTTP/1.0\r\n\r\n"}, {"header", "PROXY INVALID"},
	{"untrusted", header1}, {"sent", "x"},
	{"preread", "GET / HTTP/1.0\r\n\r\n"}, {"preread", "\x16\x03\x01\x00\x04\x02\x00\x00\x00"}, {"small", "\x16\x03\x01\x10\x00" + strings.Repeat("x", 20)},
	{"inner", ""}, {"verified", ""}, {"wrong", ""},
}

// TestStreamAsNginx: what clients and upstreams of stream receive, and what is logged.
func TestStreamAsNginx(t *testing.T) {
	if _, err := os.Stat("/usr/lib/nginx/modules/ngx_stream_module.so"); err != nil {
		t.Fatalf("Debian's module of stream is needed (apt-get install libnginx-mod-stream): %v", err)
	}
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		text, _ := io.ReadAll(p.R)
		_, _ = p.Write(text)
	})
	theirs, ours := runStream(t, startNginx, up), runStream(t, startCulvert, up)
	for _, line := range without(theirs, ours) {
		t.Errorf("nginx alone:   %.300q", line)
	}
	for _, line := range without(ours, theirs) {
		t.Errorf("culvert alone: %.300q", line)
	}
}

// without returns the lines of one list that the other lacks.
func without(list, other []string) (rest []string) {
	times := map[string]int{}
	for _, line := range other {
		times[line]++
	}
	for _, line := range list {
		if times[line]--; times[line] < 0 {
			rest = append(rest, line)
		}
	}
	return rest
}

// runStream takes the steps, and returns what was received and logged.
func runStream(t *testing.T, start starter, up string) (lines []string) {
	t.Helper()
	tcp, udp, udp2 := wiretest.Free(t), freeUDP(t), freeUDP(t)
	conf := strings.NewReplacer("{{UP}}", up, "{{TCP}}", tcp, "{{UDP}}", udp, "{{UDP2}}", udp2).Replace(streamConf)
	s := start(t, conf, authority.files)
	_, port, _ := net.SplitHostPort(tcp)
	plain := strings.NewReplacer(s.dir, "DIR", up, "UP", udp2, "UDP2", port, "PORT")
	for _, step := range streamSteps {
		lines = append(lines, step[0]+": "+plain.Replace(talk(t, "unix", filepath.Join(s.dir, step[0]), step[1])))
	}
	lines = append(lines, "TCP: "+plain.Replace(talk(t, "tcp", tcp, header1+"and bytes")))
	for _, name := range []string{"upstream.example", "b.example"} {
		lines = append(lines, "TLS: "+plain.Replace(talkTLS(t, filepath.Join(s.dir, "preread"), name)))
	}
	lines = append(lines, "UDP: "+datagram(t, udp), "UDP: "+datagram(t, udp))
	s.end(t, syscall.SIGQUIT)
	log, err := os.ReadFile(filepath.Join(s.dir, "stream.log"))
	if err != nil {
		t.Error(err)
	}
	return append(lines, strings.Split(plain.Replace(string(log)), "\n")...)
}

// talk sends text and its end, and returns what is received.
func talk(t *testing.T, network, addr, text string) string {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	go func() {
		_, _ = io.WriteString(c, text) // a server may not read it
		if text != "" {
			_ = c.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	received, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: still open", addr)
	}
	return string(received)
}

func talkTLS(t *testing.T, socket, name string) string {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	received, err := io.ReadAll(tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true}))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: still open", socket)
	}
	return string(received)
}

func datagram(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	if err != nil {
		t.Error(err)
	}
	return string(b[:n])
}

func freeUDP(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}
