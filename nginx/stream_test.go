package nginx_test

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// stream starts a server of a configuration with the lines in its stream block. PORT is replaced by its address; certificates of
// the names are written before.
func stream(t *testing.T, text string, names ...string) (s *site, addr string) {
	t.Helper()
	leaktest.Check(t)
	s, addr = &site{t: t, dir: t.TempDir()}, wiretest.Free(t)
	for _, name := range names {
		s.certify(name)
	}
	s.writeStream(addr, text)
	s.start()
	return s, addr
}

func (s *site) writeStream(addr, text string) {
	s.t.Helper()
	text = "error_log error.log info;\nevents {}\nstream {\n" + strings.ReplaceAll(text, "PORT", addr) + "\n}\n"
	if err := os.WriteFile(filepath.Join(s.dir, "nginx.conf"), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// logged closes the server and returns the content of a log.
func (s *site) logged(name string) string {
	s.t.Helper()
	if err := s.Shutdown(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Error(err)
	}
	return string(text)
}

// reversing responds to each line with the line backwards.
func reversing(t *testing.T) string {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		for {
			line, err := p.R.ReadString('\n')
			if err != nil {
				return
			}
			b := []byte(line[:len(line)-1])
			for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
				b[i], b[j] = b[j], b[i]
			}
			p.Send(string(b) + "\n")
		}
	})
}

func TestStreamProxy(t *testing.T) {
	up := reversing(t)
	s, addr := stream(t, `log_format f "$remote_addr $protocol $status $bytes_received $bytes_sent $upstream_addr $upstream_bytes_sent $upstream_bytes_received $connection";
		access_log access.log f;
		server { listen PORT; proxy_pass `+up+`; }`)
	c := wiretest.Dial(t, addr)
	c.Send("abc\n")
	c.Receive("cba\n")
	c.Send("12345\n")
	c.Receive("54321\n")
	c.End()
	if rest := c.Rest(); rest != "" {
		t.Errorf("%q", rest)
	}
	if got, want := s.logged("access.log"), "127.0.0.1 TCP 200 10 10 "+up+" 10 10 1\n"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	errors, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
	if want := "client disconnected, bytes from/to client:10/10, bytes from/to upstream:10/10"; !strings.Contains(string(errors), want) {
		t.Errorf("the error log lacks %q: %s", want, errors)
	}
}

// Bulk is moved without loss, in both directions and with both ends of a half-closed connection.
func TestStreamHalfCloseBulk(t *testing.T) {
	size := wiretest.Size(64<<20, 8<<20)
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		sum := sha256.New()
		if n, err := io.Copy(sum, p.R); int(n) != size || err != nil {
			t.Errorf("the target received %d bytes, %v", n, err)
		}
		p.Send(string(wiretest.Pattern(size)) + string(sum.Sum(nil)))
	})
	s, addr := stream(t, `log_format f "$bytes_received $bytes_sent $upstream_bytes_sent $upstream_bytes_received"; access_log access.log f;
		server { listen PORT; proxy_half_close on; proxy_pass `+up+"; }")
	c := wiretest.Dial(t, addr)
	sent := wiretest.Pattern(size)
	c.Send(string(sent))
	c.End()
	sum := sha256.Sum256(sent)
	wiretest.SameBytes(t, "response", []byte(c.Rest()), append(wiretest.Pattern(size), sum[:]...))
	if got, want := s.logged("access.log"), fmt.Sprintln(size, size+len(sum), size, size+len(sum)); got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// Without half_close the end of one side ends the session.
func TestStreamEnd(t *testing.T) {
	ended := make(chan string, 1)
	up := wiretest.Target(t, func(p *wiretest.Peer) { ended <- p.Ended() })
	_, addr := stream(t, "server { listen PORT; proxy_pass "+up+"; }")
	c := wiretest.Dial(t, addr)
	c.Send("all")
	c.End()
	if got := wiretest.Await(t, ended, "end"); got != "all" {
		t.Errorf("the target received %q", got)
	}
	c.Ended()
}

// A session that runs at a reload continues, and Shutdown waits for it.
func TestStreamReload(t *testing.T) {
	old, next := reversing(t), wiretest.Target(t, func(p *wiretest.Peer) { p.Send("next") })
	s, addr := stream(t, "server { listen PORT; proxy_pass "+old+"; }")
	c := wiretest.Dial(t, addr)
	c.Send("ab\n")
	c.Receive("ba\n")
	s.writeStream(addr, "server { listen PORT; proxy_pass "+next+"; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := wiretest.Dial(t, addr).Rest(); got != "next" {
		t.Errorf("a new session received %q", got)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(t.Context()) }()
	c.Send("cd\n")
	c.Receive("dc\n")
	c.End()
	if err := wiretest.Await(t, ended, "end of Shutdown"); err != nil {
		t.Error(err)
	}
}

// worker_shutdown_timeout cuts sessions off.
func TestStreamShutdownTimeout(t *testing.T) {
	up := reversing(t)
	s, addr := stream(t, "server { listen PORT; proxy_pass "+up+"; }\n}\nworker_shutdown_timeout 50ms;\nhttp {")
	c := wiretest.Dial(t, addr)
	c.Send("ab\n")
	c.Receive("ba\n")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	c.Ended()
}

func TestStreamPhases(t *testing.T) {
	for name, test := range map[string]struct{ text, send, want, log string }{
		"return":              {`server { listen PORT; set $a x$protocol; return "$a $server_port"; }`, "", "xTCP ", "200"},
		"deny":                {`server { listen PORT; deny 127.0.0.0/8; return a; }`, "", "", "403"},
		"allow first":         {`server { listen PORT; allow 127.0.0.1; deny all; return a; }`, "", "a", "200"},
		"no live upstream":    {`upstream u { server 127.0.0.1:1 down; } server { listen PORT; proxy_pass u; }`, "", "", "502"},
		"refused":             {`server { listen PORT; proxy_pass 127.0.0.1:1; }`, "", "", "502"},
		"next":                {`upstream u { server 127.0.0.1:1; server TARGET; } server { listen PORT; proxy_pass u; }`, "", "target", "200"},
		"next off":            {`upstream u { server 127.0.0.1:1; server TARGET backup; } server { listen PORT; proxy_next_upstream off; proxy_pass u; }`, "", "", "502"},
		"tries":               {`upstream u { server 127.0.0.1:1; server 127.0.0.1:2; server TARGET backup; } server { listen PORT; proxy_next_upstream_tries 2; proxy_pass u; }`, "", "", "502"},
		"no resolver":         {`server { listen PORT; proxy_pass name.test:$server_port; }`, "", "", "500"},
		"variable":            {`map $server_addr $to { default TARGET; } server { listen PORT; proxy_pass $to; }`, "", "target", "200"},
		"header":              {`server { listen PORT proxy_protocol; set_real_ip_from 127.0.0.1; return "$remote_addr:$remote_port $realip_remote_addr $proxy_protocol_server_port"; }`, "PROXY TCP4 192.0.2.7 192.0.2.8 9 10\r\n", "192.0.2.7:9 127.0.0.1 10", "200"},
		"header not trusted":  {`server { listen PORT proxy_protocol; return "$remote_addr $proxy_protocol_addr"; }`, "PROXY TCP4 192.0.2.7 192.0.2.8 9 10\r\n", "127.0.0.1 192.0.2.7", "200"},
		"header's TLV":        {`server { listen PORT proxy_protocol; return "$proxy_protocol_tlv_alpn"; }`, "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x11\xc0\x00\x02\x07\xc0\x00\x02\x08\x00\x09\x00\x0a\x01\x00\x02h2", "h2", "200"},
		"broken header":       {`server { listen PORT proxy_protocol; return a; }`, "GET / HTTP/1.0\r\n\r\n", "", "400"},
		"preread, not TLS":    {`server { listen PORT; ssl_preread on; return "<$ssl_preread_server_name>"; }`, "GET / HTTP/1.0\r\n\r\n", "<>", "200"},
		"preread buffer":      {`server { listen PORT; ssl_preread on; preread_buffer_size 16; return a; }`, "\x16\x03\x01\x10\x00" + strings.Repeat("x", 11), "", "400"},
		"set before map":      {`map 0 $m { default old; } server { listen PORT; set $m new; return $m; }`, "", "new", "200"},
		"later content":       {`server { listen PORT; proxy_pass TARGET; return a; }`, "", "a", "200"},
		"geo of an address":   {`geo $g { ranges; default d; 127.0.0.0-127.0.0.255 a; 127.0.0.1-127.0.0.1 b; } server { listen PORT; return $g; }`, "", "b", "200"},
		"geo, deleted":        {`geo $g { ranges; default d; 127.0.0.0-127.0.0.255 a; 127.0.0.1-127.0.0.1 b; delete 127.0.0.1-127.0.0.1; } server { listen PORT; return $g; }`, "", "d", "200"},
		"port of two servers": {`server { listen PORT; server_name a; return a; } server { listen PORT default_server; return $server_name.; }`, "", ".", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			target := wiretest.Target(t, func(p *wiretest.Peer) { p.Send("target") })
			s, addr := stream(t, "log_format f $status; access_log access.log f;\n"+strings.ReplaceAll(test.text, "TARGET", target))
			_, port, _ := net.SplitHostPort(addr)
			c := wiretest.Dial(t, addr)
			c.Send(test.send)
			if got := strings.TrimSuffix(c.Ended(), port); got != test.want {
				t.Errorf("received %q, want %q", got, test.want)
			}
			if got := s.logged("access.log"); got != test.log+"\n" {
				t.Errorf("logged %q, want %s", got, test.log)
			}
		})
	}
}

func TestStreamLimitConn(t *testing.T) {
	up := reversing(t)
	s, addr := stream(t, `limit_conn_zone $binary_remote_addr zone=z:1m; log_format f $limit_conn_status:$status; access_log access.log f;
		server { listen PORT; limit_conn z 1; proxy_pass `+up+`; }`)
	c := wiretest.Dial(t, addr)
	c.Send("ab\n")
	c.Receive("ba\n")
	if got := wiretest.Dial(t, addr).Ended(); got != "" {
		t.Errorf("a second one received %q", got)
	}
	c.End()
	c.Ended()
	c = wiretest.Dial(t, addr)
	c.Send("cd\n")
	c.Receive("dc\n")
	c.End()
	c.Ended()
	if got := s.logged("access.log"); got != "REJECTED:503\nPASSED:200\nPASSED:200\n" {
		t.Errorf("logged %q", got)
	}
}

// The header of the PROXY protocol that is received is sent on, in front of what was sent behind it.
func TestStreamProxyProtocol(t *testing.T) {
	up := wiretest.Target(t, func(p *wiretest.Peer) { p.Send("<" + p.Ended() + ">") })
	_, addr := stream(t, "server { listen PORT proxy_protocol; set_real_ip_from 127.0.0.1; proxy_half_close on; proxy_protocol on; proxy_pass "+up+"; }")
	c := wiretest.Dial(t, addr)
	c.Send("PROXY TCP4 192.0.2.7 192.0.2.8 9 10\r\nbytes")
	c.End()
	host, port, _ := net.SplitHostPort(addr)
	if got, want := c.Rest(), "<PROXY TCP4 192.0.2.7 "+host+" 9 "+port+"\r\nbytes>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// preread leaves the handshake to the target that its name leads to; pass hands the connection to a server of http.
func TestStreamPreread(t *testing.T) {
	inner := wiretest.Free(t)
	s, addr := stream(t, `log_format f "$ssl_preread_server_name $ssl_preread_alpn_protocols $ssl_preread_protocol"; access_log access.log f;
		map $ssl_preread_server_name $to { a.test `+inner+`; default 127.0.0.1:1; }
		server { listen PORT; ssl_preread on; proxy_pass $to; }
		server { listen PORT; server_name b.test; pass `+inner+`; }
	}
	http { server { listen `+inner+` ssl; ssl_certificate a.test.crt; ssl_certificate_key a.test.key; return 200 "$remote_addr $server_port"; }`, "a.test")
	_, port, _ := net.SplitHostPort(inner)
	for _, name := range []string{"a.test", "b.test"} {
		c, err := tls.Dial("tcp", addr, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			t.Error(err)
		}
		text, err := io.ReadAll(c)
		if err != nil || !strings.HasSuffix(string(text), "127.0.0.1 "+port) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		c.Close()
	}
	if got := s.logged("access.log"); got != "a.test http/1.1 TLSv1.3\n" {
		t.Errorf("logged %q", got)
	}
}

func TestStreamTLS(t *testing.T) {
	s, addr := stream(t, `
		ssl_certificate a.test.crt; ssl_certificate_key a.test.key;
		server { listen PORT ssl; ssl_alpn first second; return "$ssl_server_name $ssl_alpn_protocol $ssl_protocol $server_name"; }
		server { listen PORT ssl; server_name b.test; ssl_certificate b.test.crt; ssl_certificate_key b.test.key;
			ssl_verify_client on; ssl_client_certificate a.test.crt; return "$ssl_client_verify $ssl_client_s_dn"; }
		server { listen PORT ssl; server_name c.test; ssl_reject_handshake on; }
		server { listen PORT ssl; server_name d.test e.test; ssl_certificate $ssl_server_name.crt; ssl_certificate_key $ssl_server_name.key; return $ssl_server_name; }`,
		"a.test", "b.test", "d.test")
	own, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "a.test.crt"), filepath.Join(s.dir, "a.test.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		alpn  []string
		certs []tls.Certificate
		want  string
	}{
		{"a.test", []string{"second"}, nil, "a.test second TLSv1.3 "},
		{"a.test", nil, nil, "a.test  TLSv1.3 "},
		{"a.test", []string{"third"}, nil, "no application protocol"},
		{"b.test", nil, nil, ""},
		{"b.test", nil, []tls.Certificate{own}, "SUCCESS CN=a.test"},
		{"c.test", nil, nil, "unrecognized name"},
		{"d.test", nil, nil, "d.test"},
		{"e.test", nil, nil, "internal error"}, // it has no file
	} {
		c, err := tls.Dial("tcp", addr, &tls.Config{ServerName: test.name, InsecureSkipVerify: true, NextProtos: test.alpn, Certificates: test.certs})
		if err != nil {
			if !strings.Contains(err.Error(), test.want) || test.want == "" {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if got := c.ConnectionState().PeerCertificates[0].Subject.CommonName; got != test.name {
			t.Errorf("%s has the certificate of %s", test.name, got)
		}
		if text, _ := io.ReadAll(c); string(text) != test.want {
			t.Errorf("%s: %q, want %q", test.name, text, test.want)
		}
		c.Close()
	}
}

// proxy_ssl verifies by the name of the upstream, or by proxy_ssl_name.
func TestStreamProxySSL(t *testing.T) {
	inner, wrong := wiretest.Free(t), wiretest.Free(t)
	s, addr := stream(t, `
		upstream a.test { server `+inner+`; }
		log_format f "$status"; access_log access.log f;
		server { listen `+inner+` ssl; ssl_certificate a.test.crt; ssl_certificate_key a.test.key; access_log off; return "<$ssl_server_name>"; }
		proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate a.test.crt;
		server { listen PORT; proxy_ssl_server_name on; proxy_pass a.test; }
		server { listen `+wrong+`; proxy_ssl_name b.test; proxy_pass a.test; }`, "a.test")
	if got := wiretest.Dial(t, addr).Rest(); got != "<a.test>" {
		t.Errorf("received %q", got)
	}
	if got := wiretest.Dial(t, wrong).Ended(); got != "" {
		t.Errorf("another name: received %q", got)
	}
	if got := s.logged("access.log"); got != "200\n502\n" {
		t.Errorf("logged %q", got)
	}
	errors, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
	if want := `upstream SSL certificate does not match "b.test"`; !strings.Contains(string(errors), want) {
		t.Errorf("the error log lacks %q: %s", want, errors)
	}
}

// proxy_timeout ends a session in which nothing is moved, not one in which one side sends.
func TestStreamTimeout(t *testing.T) {
	up := wiretest.Target(t, func(p *wiretest.Peer) { p.Ended() })
	s, addr := stream(t, "server { listen PORT; proxy_timeout 200ms; proxy_pass "+up+"; }")
	c := wiretest.Dial(t, addr)
	c.Send("bytes")
	c.Ended()
	if got, want := s.logged("error.log"), "connection timed out (110: Connection timed out) while proxying connection, client: 127.0.0.1, server: "+addr+", upstream: \""+up+"\", bytes from/to client:5/0, bytes from/to upstream:0/5"; !strings.Contains(got, want) {
		t.Errorf("the error log lacks %q: %s", want, got)
	}
}

// Connections are counted in the order in which they were accepted.
func TestStreamOrder(t *testing.T) {
	up := reversing(t)
	_, addr := stream(t, "limit_conn_zone $binary_remote_addr zone=z:1m; server { listen PORT; limit_conn z 1; proxy_pass "+up+"; }")
	for range 100 {
		first, second := wiretest.Dial(t, addr), wiretest.Dial(t, addr)
		second.Ended()
		first.Send("ab\n")
		first.Receive("ba\n")
		first.End()
		first.Ended()
		first.Close()
		second.Close()
		if t.Failed() {
			return
		}
	}
}

// Regular expressions of a session are those of http; one that is given up ends it, regardless of what it was for.
func TestStreamPatterns(t *testing.T) {
	long := strings.Repeat("a", 60) + "!"
	failing := []string{wiretest.Free(t), wiretest.Free(t)}
	s, addr := stream(t, `log_format f "$status $bytes_sent"; access_log a.log f;
		map $protocol $known { default no; ~^(?=TCP)(?<kind>.)CP$ "yes, $kind"; }
		map "`+long+`" $unknown { default served; ~^(?!x)(a+)+$ x; }
		server { listen PORT; return $known; }
		server { listen `+failing[0]+`; set $copy $unknown; return served; }
		server { listen `+failing[1]+`; return $unknown; }`)
	read := func(addr string) string {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		return string(text)
	}
	if got := read(addr); got != "yes, T" {
		t.Errorf("got %q", got)
	}
	for _, addr := range failing {
		if got := read(addr); got != "" {
			t.Errorf("a session for which a match was given up has %q", got)
		}
	}
	if got := s.logged("a.log"); got != "200 6\n500 0\n500 0\n" {
		t.Errorf("logged %q", got)
	}
	if log, err := os.ReadFile(filepath.Join(s.dir, "error.log")); err != nil || strings.Count(string(log), "[alert]") != 2 || !strings.Contains(string(log), "pcre2_match() failed: -47 on \"aaa") {
		t.Errorf("%v: %s", err, log)
	}
}
