package e2e

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Chromium loads a page over HTTP/3, uploads from it and streams to it, also behind a reload, which it does not notice.
func TestChromiumHTTP3(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/plain")
		if err == nil {
			_, _ = io.WriteString(w, strconv.FormatInt(n, 10)+" over "+r.Header.Get("X-Proto"))
		}
	}))
	t.Cleanup(backend.Close)
	files := certificates()
	files["html/index.html"] = `<!doctype html><title>page</title><script>
		async function upload() {
			const r = await fetch("/up", {method: "POST", body: new Uint8Array(3000000)});
			return await r.text() + " " + performance.getEntriesByType("navigation")[0].nextHopProtocol;
		}</script>`
	s := startCulvert(t, `http { access_log access.log; ssl_certificate first.pem; ssl_certificate_key first.key;
		server { listen {{LISTEN}} ssl; listen {{LISTEN}} quic reuseport; http2 on; client_max_body_size 10m;
			location / { root html; add_header Alt-Svc 'h3=":$server_port"; ma=60'; }
			location /up { proxy_pass `+backend.URL+`; proxy_set_header X-Proto $server_protocol; } } }`, files)
	_, port, _ := net.SplitHostPort(s.address)
	origin := "first.example:" + port
	b := startBrowser(t, chromedp.Flag("disable-quic", false), chromedp.Flag("enable-quic", true), chromedp.Flag("origin-to-force-quic-on", origin),
		chromedp.Flag("host-resolver-rules", "MAP first.example 127.0.0.1"),
		chromedp.Flag("ignore-certificate-errors-spki-list", keyHash(t, files["first.pem"])))
	upload := func() {
		t.Helper()
		var got string
		b.run(t, chromedp.Evaluate(`window.got = ""; upload().then(s => window.got = s, e => window.got = String(e)); 0`, nil),
			chromedp.Poll(`window.got`, &got, chromedp.WithPollingTimeout(30*time.Second)))
		if want := "3000000 over HTTP/3.0 h3"; got != want {
			t.Errorf("%q, want %q; console %s", got, want, b.log())
		}
	}
	b.run(t, chromedp.Navigate("https://"+origin+"/"))
	upload()
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	upload()
	upload()
	s.end(t, syscall.SIGQUIT)
	log, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(log), "POST /up HTTP/3.0") != 3 {
		t.Errorf("logged %s", log)
	}
}

// keyHash returns the hash of a certificate's public key by which Chromium is made to trust it.
func keyHash(t *testing.T, text string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}
