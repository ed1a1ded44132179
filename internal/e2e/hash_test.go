package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// hashConf is a group behind ip_hash.
func hashConf(servers string) string {
	return httpBlock(`upstream group { ip_hash; ` + servers + ` } server { listen {{LISTEN}}; location / { proxy_pass http://group; } }`)
}

// hashSteps send requests from many addresses of 127.0.0.0/8: each must go to the same
// upstream behind either server. The hash looks at the first three bytes.
func hashSteps() []step {
	var steps []step
	for i := range 100 {
		address := fmt.Sprintf("127.%d.%d.%d", i*7%256, i*131%256, 1+i%250)
		steps = append(steps, step{name: "from " + address, local: address, raw: get("/x")})
	}
	return steps
}

// keyConf is a group behind hash.
func keyConf(how, servers string) string {
	return httpBlock(`upstream group { hash $arg_key` + how + `; ` + servers + ` } server { listen {{LISTEN}}; location / { proxy_pass http://group; } }`)
}

// keySteps are requests with many keys, and with none.
func keySteps() []step {
	var steps []step
	for i := range 100 {
		key := strings.Repeat(fmt.Sprint(i*i), 1+i%4)
		steps = append(steps, step{name: "key " + key, raw: get("/x?key=" + key)})
	}
	for i := range 6 {
		steps = append(steps, step{name: fmt.Sprint("no key, ", i), raw: get("/x")})
	}
	return steps
}

// TestConsistentHashAsNginx sends requests to both, with the same upstreams behind them: where a key goes depends
// on their addresses.
func TestConsistentHashAsNginx(t *testing.T) {
	for name, servers := range map[string]string{
		"plain":   "server {{UP1}}; server {{UP2}}; server {{UP3}};",
		"weights": "server {{UP1}} weight=3; server {{UP2}}; server {{UP3}} weight=2;",
		"down":    "server {{UP1}}; server {{UP2}} down; server {{UP3}};",
		"dead":    "server {{UP1}}; server {{DEAD}}; server {{UP3}};",
	} {
		t.Run(name, func(t *testing.T) {
			sc := scenario{conf: keyConf(" consistent", servers)}
			theirs := newSide(t, startNginx, sc)
			ours := &side{upstreams: theirs.upstreams, addresses: theirs.addresses[:len(theirs.addresses)-4]}
			ours.server = startCulvert(t, ours.fill(sc.conf), nil)
			for _, st := range keySteps() {
				a, b := theirs.run(t, st), ours.run(t, st)
				if x, y := requestedOnly(a), requestedOnly(b); x != y {
					t.Errorf("%s: nginx sent to %q, culvert to %q", st.name, x, y)
				}
			}
		})
	}
}

// requestedOnly names the upstreams that got requests.
func requestedOnly(s seen) string {
	var names []string
	for name := range s.Upstream {
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
