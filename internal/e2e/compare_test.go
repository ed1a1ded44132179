package e2e

import (
	"compress/gzip"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// scenario is a configuration that both servers run, and what is sent to both.
type scenario struct {
	name string
	// conf is the http block. {{LISTEN}} is the server's address, {{UP1}} to
	// {{UP3}} are upstreams, {{DEAD}} an address where nobody listens, {{DIR}} the
	// prefix.
	conf  string
	files map[string]string
	steps []step
	// log is a file of the prefix that is compared at the end.
	log string
}

// step is what is sent over one connection.
type step struct {
	name    string
	raw     string
	methods []string // of the answers to expect; nil is one GET
	local   string   // the client's address; "" is any
	sni     string   // speak TLS and ask for this server
}

// seen is what a step came to.
type seen struct {
	Answers     []response
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
	s.addresses = append(s.addresses, "{{DEAD}}", freeAddress(t))
	s.server = start(t, strings.NewReplacer(s.addresses...).Replace(sc.conf), sc.files)
	s.addresses = append(s.addresses, "{{LISTEN}}", s.server.address)
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
	conn := dial(t, s.server.address, st.local)
	defer func() { conn.Close() }()
	if st.sni != "" {
		conn, result.Certificate = handshake(t, conn, st.sni)
	}
	result.Answers = converse(t, conn, s.fill(st.raw), methods...)
	for i := range result.Answers {
		result.Answers[i].inflate(t)
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
		_, port, _ := strings.Cut(s.addresses[i+1], ":")
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
			t.Errorf("the difference %q was never met: remove it", d.name)
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
