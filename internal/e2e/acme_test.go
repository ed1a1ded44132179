package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// pebble is Let's Encrypt's ACME server for tests.
type pebble struct {
	*httptest.Server
	roots *x509.CertPool // of its certificates
}

// startPebble starts one that looks for challenges on the ports.
func startPebble(t *testing.T, http, tls int) *pebble {
	return startPebbleFor(t, http, tls, 90*24*time.Hour)
}

// startPebbleFor starts one whose certificates are valid for a time.
func startPebbleFor(t *testing.T, http, tls int, life time.Duration) *pebble {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	quiet, store, resolver := log.New(io.Discard, "", 0), db.NewMemoryStore(), loopbackResolver(t)
	authority := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: uint64(life / time.Second)}})
	front := wfe.New(quiet, store, va.New(quiet, http, tls, true, resolver, store), authority, []string{"pebble.example"}, true, false, 1, 1)
	p := &pebble{httptest.NewTLSServer(front.Handler()), x509.NewCertPool()}
	t.Cleanup(p.Close)
	p.roots.AppendCertsFromPEM(authority.GetRootCert(0).PEM())
	return p
}

// directives returns an acme_issuer.
func (p *pebble) issuer(more string) string {
	return fmt.Sprintf("acme_issuer pebble { uri %s%s; ssl_trusted_certificate pebble.pem; contact admin@shop.example; state_path state; %s }",
		p.URL, wfe.DirectoryPath, more)
}

func (p *pebble) files() map[string]string {
	return map[string]string{"pebble.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))}
}

// loopbackResolver serves 127.0.0.1 as the address of every name, over TCP.
func loopbackResolver(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		response := new(dns.Msg).SetReply(query)
		if question := query.Question[0]; question.Qtype == dns.TypeA {
			response.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(response)
	})}
	served := make(chan error, 1)
	go func() { served <- s.ActivateAndServe() }()
	t.Cleanup(func() {
		l.Close()
		<-served
	})
	return l.Addr().String()
}

// port returns a free port of 127.0.0.1.
func port(t *testing.T) int {
	_, text, _ := net.SplitHostPort(wiretest.Free(t))
	n, _ := strconv.Atoi(text)
	return n
}

// certificateAt returns the certificate that is shown for a name, and whether the roots verify it.
func certificateAt(port int, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	c, err := tls.Dial("tcp", fmt.Sprint("127.0.0.1:", port), &tls.Config{ServerName: name, RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

// Certificates are issued by each of the challenges, kept over a reload and in state_path over a restart, where the authority
// is not needed.
func TestACME(t *testing.T) {
	for _, challenge := range []string{"http-01", "tls-alpn-01"} {
		t.Run(challenge, func(t *testing.T) {
			httpPort, tlsPort := port(t), port(t)
			p := startPebble(t, httpPort, tlsPort)
			conf := "error_log error.log notice; events {} http { " + p.issuer("accept_terms_of_service; challenge "+challenge+";") + fmt.Sprintf(`
				ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;
				server { listen {{LISTEN}}; listen 127.0.0.1:%d; location / { return 404; } }
				server { listen 127.0.0.1:%d ssl; server_name .shop.example www.shop.example; acme_certificate pebble; return 200 shop; }
				server { listen 127.0.0.1:%d ssl; server_name mail.example imap.example; acme_certificate pebble imap.example mail.example key=rsa:2048; return 200 mail; } }`,
				httpPort, tlsPort, tlsPort)
			s := startCulvert(t, conf, p.files())
			t.Cleanup(func() {
				if log, _ := os.ReadFile(filepath.Join(s.dir, "error.log")); t.Failed() {
					t.Logf("error.log:\n%.2000s", log)
				}
			})
			shown := map[string]string{}
			for _, name := range []string{"shop.example", "www.shop.example", "imap.example", "mail.example"} {
				waitFor(t, name, func() bool {
					c, err := certificateAt(tlsPort, name, p.roots)
					if err == nil {
						shown[name] = c.SerialNumber.String()
					}
					return err == nil
				})
			}
			if shown["shop.example"] != shown["www.shop.example"] || shown["imap.example"] != shown["mail.example"] || shown["imap.example"] == shown["shop.example"] {
				t.Errorf("certificates %v", shown)
			}
			check := func(when string) {
				t.Helper()
				for name, want := range shown {
					c, err := certificateAt(tlsPort, name, p.roots)
					if err != nil || c.SerialNumber.String() != want {
						t.Errorf("%s: %s: %v", when, name, err)
					}
				}
			}
			p.Close()
			if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the reload", func() bool {
				log, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
				return strings.Contains(string(log), "exited with code 0")
			})
			check("reload")
			s.end(t, syscall.SIGTERM)
			files := p.files()
			kept, err := filepath.Glob(filepath.Join(s.dir, "state", "*"))
			if err != nil || len(kept) != 3 {
				t.Errorf("kept %v, %v", kept, err)
			}
			for _, name := range kept {
				b, err := os.ReadFile(name)
				if info, _ := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v %v", name, info, err)
				}
				files["state/"+filepath.Base(name)] = string(b)
			}
			startCulvert(t, conf, files)
			for name := range shown {
				waitFor(t, name, func() bool { _, err := certificateAt(tlsPort, name, p.roots); return err == nil })
			}
			check("restart")
		})
	}
}

// A certificate is renewed before it expires.
func TestACMERenewal(t *testing.T) {
	httpPort, tlsPort := port(t), port(t)
	p := startPebbleFor(t, httpPort, tlsPort, 10*time.Second)
	startCulvert(t, "http { "+p.issuer("accept_terms_of_service;")+fmt.Sprintf(`
		server { listen {{LISTEN}}; listen 127.0.0.1:%d; }
		server { listen 127.0.0.1:%d ssl; server_name shop.example; acme_certificate pebble;
			ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; } }`, httpPort, tlsPort), p.files())
	serials := map[string]bool{}
	waitFor(t, "another certificate", func() bool {
		if c, err := certificateAt(tlsPort, "shop.example", p.roots); err == nil {
			serials[c.SerialNumber.String()] = true
		}
		return len(serials) == 2
	})
}

// Without the operator's consent there is no account, and the error log says why. A test of the file makes no request.
func TestACMETerms(t *testing.T) {
	p := startPebble(t, port(t), port(t))
	requests := make(chan string, 100)
	handler := p.Config.Handler
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		handler.ServeHTTP(w, r)
	})
	conf := "http { " + p.issuer("") + ` ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;
		server { listen {{LISTEN}} ssl; server_name shop.example; acme_certificate pebble; } }`
	s := startCulvert(t, conf, p.files())
	waitFor(t, "the error", func() bool {
		log, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
		return strings.Contains(string(log), `acme issuer "pebble": account for "shop.example": the terms of service are not accepted (accept_terms_of_service)`)
	})
	s.end(t, syscall.SIGTERM)
	before := len(requests)
	out, err := exec.Command(culvertNginx, "-t", "-q", "-p", s.dir+"/", "-c", filepath.Join(s.dir, "nginx.conf")).CombinedOutput()
	if err != nil || len(requests) != before || before == 0 {
		t.Errorf("%d requests, then %d; %v %s", before, len(requests), err, out)
	}
}
