package e2e

import (
	"compress/gzip"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// scenario is a configuration that both servers run, and what is sent to both.
type scenario struct {
	name string
	// conf is the http block. {{LISTEN}} is the server's address, {{UP1}} to
	// {{UP3}} are upstreams, {{DEAD}} an address on which no server listens, {{DIR}} the
	// prefix.
	conf  string
	files map[string]string
	// prepare, if not nil, adds to the files what a map can't say.
	prepare func(t *testing.T, dir string)
	zone    string // the servers' time zone; "" is the test's
	steps   []step
	// log is a file of the prefix that is compared at the end.
	log string
}

// step is what is sent over one connection.
type step struct {
	name    string
	raw     string
	methods []string // of the expected responses; nil is one GET
	local   string   // the client's address; "" is any; over a unix socket a file's name
	unix    string   // connect to this unix socket in the prefix
	sni     string   // speak TLS and name this server
	cert    string   // with the certificate of this name
	end     bool     // the client ends its side behind raw
	copies  int      // requests that upstreams get beside the response: they are awaited
}

// seen is what a step came to.
type seen struct {
	Responses   []response
	Upstream    map[string][]upstreamRequest
	Certificate string `json:",omitempty"`
}

// side is one of the two servers with its upstreams.
type side struct {
	server    *server
	upstreams map[string]*origin
	addresses []string // placeholder, address, ...
}

func newSide(t *testing.T, start func(*testing.T, string, map[string]string) *server, sc scenario) *side {
	t.Helper()
	s := &side{upstreams: map[string]*origin{}}
	for _, name := range []string{"UP1", "UP2", "UP3"} {
		u := startOrigin(t)
		s.upstreams[name] = u
		s.addresses = append(s.addresses, "{{"+name+"}}", u.address)
	}
	s.addresses = append(s.addresses, "{{DEAD}}", wiretest.Unused(t))
	s.more(t)
	if sc.zone != "" {
		t.Setenv("TZ", sc.zone)
	}
	s.server = start(t, strings.NewReplacer(s.addresses...).Replace(sc.conf), sc.files)
	if sc.prepare != nil {
		sc.prepare(t, s.server.dir)
	}
	s.addresses = append(s.addresses, "{{LISTEN}}", s.server.address, "{{DIR}}", s.server.dir)
	return s
}

// run runs one step. Addresses in what was seen are put back to their
// placeholders, so that the two sides can be compared.
func (s *side) run(t *testing.T, st step) seen {
	t.Helper()
	methods := st.methods
	if methods == nil {
		methods = []string{"GET"}
	}
	result := seen{Upstream: map[string][]upstreamRequest{}}
	conn := s.dial(t, st)
	defer func() { conn.Close() }()
	if st.sni != "" {
		conn, result.Certificate = handshake(t, conn, st.sni, st.cert)
	}
	result.Responses = converse(t, conn, s.fill(st.raw), st.end, methods...)
	for i := range result.Responses {
		result.Responses[i].inflate(t)
	}
	if st.copies > 0 {
		waitFor(t, "copies of the request", func() bool { return s.requests() >= st.copies })
	}
	for name, u := range s.upstreams {
		if requests := u.take(); len(requests) > 0 {
			result.Upstream[name] = requests
		}
	}
	var back seen
	text, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal([]byte(s.unfill(string(text))), &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// dial connects as the step wants.
func (s *side) dial(t *testing.T, st step) net.Conn {
	t.Helper()
	if st.unix != "" {
		return dialUnix(t, s.server.dir, st.unix, st.local)
	}
	return dial(t, s.server.address, st.local)
}

// requests counts what upstreams have seen.
func (s *side) requests() (n int) {
	for _, u := range s.upstreams {
		u.mu.Lock()
		n += len(u.seen)
		u.mu.Unlock()
	}
	return n
}

// more are the upstreams that are no plain ones, and a name server that knows *.test.
func (s *side) more(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.upstreams["TLSUP"] = serveOrigin(t, tls.NewListener(l, upstreamTLS()))
	s.addresses = append(s.addresses, "{{TLSUP}}", l.Addr().String())
	socket := filepath.Join(t.TempDir(), "s")
	if l, err = net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	}
	s.upstreams["UNIX"] = serveOrigin(t, l)
	_, port, _ := strings.Cut(s.upstreams["UP1"].address, ":")
	s.addresses = append(s.addresses, "{{UNIX}}", socket, "{{PORT1}}", port, "{{DNS}}", startNames(t))
}

// inflate makes of a compressed body what was compressed: the bytes depend on the compressor.
func (r *response) inflate(t *testing.T) {
	t.Helper()
	if r.Body == "" || len(r.Fields["Content-Encoding"]) == 0 || r.Fields["Content-Encoding"][0] != "gzip" {
		return
	}
	z, err := gzip.NewReader(strings.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = string(body)
}

// ssha is a password as "{SSHA}" has it.
func ssha(password, salt string) string {
	sum := sha1.Sum([]byte(password + salt))
	return base64.StdEncoding.EncodeToString(append(sum[:], salt...))
}

func (s *side) fill(text string) string { return strings.NewReplacer(s.addresses...).Replace(text) }

func (s *side) unfill(text string) string {
	pairs := make([]string, 0, 2*len(s.addresses))
	for i := 0; i < len(s.addresses); i += 2 {
		if s.addresses[i] == "{{DIR}}" {
			pairs = append(pairs, s.addresses[i+1], s.addresses[i])
			continue
		}
		_, port, found := strings.Cut(s.addresses[i+1], ":")
		if !found {
			continue
		}
		pairs = append(pairs, s.addresses[i+1], s.addresses[i], ":"+port, ":"+s.addresses[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// TestSameAsNginx runs Debian's nginx and ours with the same configurations and
// sends the same bytes to both. What the client saw and what the upstreams saw
// must be equal but for the differences that differences names.
func TestSameAsNginx(t *testing.T) {
	used := map[string]int{}
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			theirs, ours := newSide(t, startNginx, sc), newSide(t, startCulvert, sc)
			for _, st := range sc.steps {
				t.Run(st.name, func(t *testing.T) {
					a, b := theirs.run(t, st), ours.run(t, st)
					for _, d := range differences {
						if d.apply(&a, &b) {
							used[d.name]++
						}
					}
					alignNames(&a, &b)
					if x, y := pretty(a), pretty(b); x != y {
						t.Errorf("sent %q\nnginx:   %s\nculvert: %s", st.raw, x, y)
					}
				})
			}
			if sc.log != "" {
				compareLogs(t, sc.log, theirs, ours)
			}
		})
	}
	if t.Failed() {
		return
	}
	for _, d := range differences {
		if used[d.name] == 0 {
			t.Logf("the difference %q was never met: nginx has changed, or no scenario shows it", d.name)
			continue
		}
		t.Logf("difference %q, %d times: %s", d.name, used[d.name], d.reason)
	}
}

func pretty(v any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err.Error()
	}
	return text.String()
}
