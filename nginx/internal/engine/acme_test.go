package engine_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What is wrong with an acme_issuer or an acme_certificate is reported at load, which sends nothing to an authority.
func TestACMEErrors(t *testing.T) {
	asked := make(chan bool, 10)
	authority := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- true }))
	t.Cleanup(authority.Close)
	issuer := func(more string) string {
		return "acme_issuer i { uri " + authority.URL + "; state_path off; " + more + " }"
	}
	for text, want := range map[string]string{
		issuer(""): "",
		issuer("accept_terms_of_service; account_key rsa; contact a@example.com https://example.com; external_account_key kid data:Zm9v; challenge tls-alpn; ssl_verify off;"): "",
		"server { uri https://a; }":                                     `"uri" directive is not allowed here`,
		"acme_issuer i { listen 80; }":                                  `"listen" directive is not allowed here`,
		"acme_issuer i { }":                                             `"uri" is missing in acme_issuer "i"`,
		"acme_issuer i { uri a; }":                                      `invalid uri "a"`,
		issuer("") + issuer(""):                                         `duplicate acme_issuer "i"`,
		issuer("challenge dns-01;"):                                     `unsupported challenge "dns-01"`,
		issuer("account_key missing.key;"):                              `missing.key" failed (2: No such file or directory)`,
		issuer("external_account_key kid data:%;"):                      "external account key is not in base64url",
		issuer("external_account_key kid;"):                             `invalid number of arguments in "external_account_key" directive`,
		issuer("ssl_verify maybe;"):                                     `invalid value "maybe" in "ssl_verify" directive`,
		issuer("ssl_trusted_certificate missing.pem;"):                  "missing.pem",
		"server { acme_certificate other; }":                            `acme_issuer "other" is missing`,
		issuer("") + "server { acme_certificate i; }":                   `no identifiers for "acme_certificate"`,
		issuer("") + "server { acme_certificate i *.a.example; }":       `unsupported identifier "*.a.example" for "acme_certificate"`,
		issuer("") + "server { acme_certificate i a.example key=dsa; }": `unsupported key "dsa"`,
		"acme_shared_zone zone=z:1M; server { server_name .a.example b.example ~x; acme_certificate i; }" + issuer(""): "",
	} {
		_, err := load(t, map[string]string{"nginx.conf": "events {} http { " + text + " }"})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if len(asked) > 0 {
		t.Error("the authority was asked")
	}
}

// A path of a challenge that is none of ours is the file's.
func TestACMEForeignChallenge(t *testing.T) {
	s := serve(t, server("location /.well-known/ { return 200 own; }"))
	equal(t, "response", s.get("/.well-known/acme-challenge/x").body, "own")
}
