package conf_test

import (
	"maps"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
)

// A directive that nginx does not have is checked as nginx's are: where it stands, and how many arguments it has.
func TestSyntax(t *testing.T) {
	specs := maps.Clone(implemented)
	specs["everywhere"] = conf.Spec{Syntax: &conf.Syntax{Contexts: conf.InAny, MaxArgs: -1}, Repeatable: true}
	specs["usual"] = conf.Spec{Syntax: &conf.Syntax{}}
	specs["in_if"] = conf.Spec{Syntax: &conf.Syntax{Contexts: conf.InIf}}
	specs["one"] = conf.Spec{Syntax: &conf.Syntax{MinArgs: 1}}
	specs["two_or_three"] = conf.Spec{Syntax: &conf.Syntax{MinArgs: 2, MaxArgs: 3}}
	const notHere, number = " directive is not allowed here in /f:1", "invalid number of arguments in "
	for text, want := range map[string]string{
		"http { everywhere; server { everywhere a; location / { everywhere a b c d e f g h i j; if ($a) { everywhere; } } } }": "",
		"everywhere;":                                             `"everywhere"` + notHere,
		"events { everywhere; }":                                  `"everywhere"` + notHere,
		"stream { everywhere; }":                                  `"everywhere"` + notHere,
		"http { upstream u { everywhere; } }":                     `"everywhere"` + notHere,
		"http { server { if ($a) { everywhere; } } }":             `"everywhere"` + notHere,
		"http { usual; server { usual; location / { usual; } } }": "",
		"http { server { location / { if ($a) { usual; } } } }":   `"usual"` + notHere,
		"http { usual; usual; }":                                  `"usual" directive is duplicate in /f:1`,
		"http { everywhere; everywhere; }":                        "",
		"http { server { location / { if ($a) { in_if; } } } }":   "",
		"http { server { location / { in_if; } } }":               `"in_if"` + notHere,
		"http { usual x; }":                                       number + `"usual" directive in /f:1`,
		"http { one; }":                                           number + `"one" directive in /f:1`,
		"http { one a; }":                                         "",
		"http { one a b; }":                                       number + `"one" directive in /f:1`,
		"http { two_or_three a; }":                                number + `"two_or_three" directive in /f:1`,
		"http { two_or_three a b; }":                              "",
		"http { two_or_three a b c; }":                            "",
		"http { two_or_three a b c d; }":                          number + `"two_or_three" directive in /f:1`,
		"http { usual { } }":                                      `directive "usual" is not terminated by ";" in /f:1`,
		"http { map $a $b { usual x; } }":                         "",
		"http { other; }":                                         `unknown directive "other" in /f:1`,
	} {
		_, err := conf.Parse(conf.Options{File: "/f", Implemented: specs, ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}

// What a Go server has no counterpart for is refused by its name, with the reason, and not as something unknown.
func TestRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"http { js_import m from x.js; }":                             "js_import\" is not supported by culvert yet (there is no JavaScript)",
		"http { server { location / { js_content m.f; } } }":          "js_content\" is not supported by culvert yet (there is no JavaScript)",
		"stream { server { js_preread m.f; } }":                       "js_preread\" is not supported by culvert yet (there is no JavaScript)",
		"http { perl_modules perl; }":                                 "perl_modules\" is not supported by culvert yet (there is no Perl)",
		"http { server { location / { perl p::h; } } }":               "perl\" is not supported by culvert yet (there is no Perl)",
		"http { server { location / { image_filter resize 1 1; } } }": "image_filter\" is not supported by culvert yet (pictures are not changed)",
		"http { server { location / { xslt_stylesheet a.xslt; } } }":  "xslt_stylesheet\" is not supported by culvert yet (XML is not transformed)",
		"http { geoip_country a.dat; }":                               "geoip_country\" is not supported by culvert yet (the databases of GeoIP are discontinued)",
		"mail { server { listen 25; protocol smtp; auth_http a; } }":  "mail\" is not supported by culvert yet (mail is not proxied)",
	} {
		_, err := conf.Parse(conf.Options{File: "/f", Implemented: implemented, ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
		if err == nil || err.Error() != "directive \""+want+" in /f:1" {
			t.Errorf("%s: %v", text, err)
		}
	}
	own := maps.Clone(implemented)
	own["js_content"] = conf.Spec{Syntax: &conf.Syntax{MinArgs: 1}}
	text := "http { server { location / { js_content m.f; } } }"
	if _, err := conf.Parse(conf.Options{File: "/f", Implemented: own, ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}); err != nil {
		t.Error(err)
	}
}

func TestKnown(t *testing.T) {
	for name, want := range map[string]bool{"proxy_pass": true, "image_filter": true, "include": true, "culvert_status": true, "uwsgi_string": true, "own_one": false, "": false} {
		if conf.Known(name) != want {
			t.Errorf("%q is known: %v", name, !want)
		}
	}
}
