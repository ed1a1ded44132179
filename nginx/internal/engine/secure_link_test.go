package engine_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"testing"
)

const (
	afterAll = "4102444800" // in 2100
	longAgo  = "1000000000"
)

func linkHash(text string) string {
	sum := md5.Sum([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestSecureLink(t *testing.T) {
	s := serve(t, server(`
		secure_link $arg_h,$arg_e; secure_link_md5 "$arg_e$uri secret";
		location / { return 200 "$secure_link $secure_link_expires"; }
		location /before { return 200 "$secure_link_expires $secure_link"; }
		location /ever { secure_link $arg_h; return 200 "$secure_link $secure_link_expires"; }
		location /moved { error_page 404 /there; set $first $secure_link; return 404; }
		location /there { return 200 "$first $secure_link $secure_link_expires"; }`))
	link := func(uri, expires string) string {
		return uri + "?h=" + linkHash(expires+uri+" secret") + "&e=" + expires
	}
	for target, want := range map[string]string{
		link("/a", afterAll):                     "1 " + afterAll,
		link("/a", longAgo):                      "0 " + longAgo,
		link("/a", afterAll) + "0":               " " + afterAll + "0", // another time's sum
		link("/a", ""):                           " ",
		link("/a", "0"):                          " ",
		link("/a", "+4102444800"):                " ",
		"/a":                                     " ",
		"/a?e=" + afterAll:                       " " + afterAll,
		"/a?h=!&e=" + afterAll:                   " " + afterAll,
		"/a?h=" + linkHash("") + "&e=" + longAgo: " " + longAgo,
		link("/before", afterAll):                " 1",
		link("/moved", afterAll):                 "1 1 ",
		"/ever?h=" + linkHash("/ever secret"):    "1 ",
		"/ever?h=" + linkHash("/other secret"):   " ",
	} {
		equal(t, target, s.get(target).body, want)
	}
}

func TestSecureLinkSecret(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http { secure_link_md5 $uri; server {
		secure_link_secret word;
		location / { return 200 "[$secure_link]"; }
		location /sum { secure_link $arg_h; secure_link_md5 $uri; return 200 "[$secure_link]"; }
		location /half { secure_link $arg_h; return 200 "[$secure_link]"; }
	} }`})
	path := func(prefix, link, secret string) string {
		sum := md5.Sum([]byte(link + secret))
		return prefix + hex.EncodeToString(sum[:]) + "/" + link
	}
	for target, want := range map[string]string{
		path("/p/", "a/b%20c?d", "word"): "[a/b%20c?d]",
		path("/p/", "a", "other"):        "[]",
		path("/p/", "", "word"):          "[]",
		path("/p/x/", "a", "word"):       "[]",
		"/p/00/a":                        "[]",
		"/p/zz/a":                        "[]",
		"/":                              "[]",
		"/sum?h=" + linkHash("/sum"):     "[1]",
		path("/sum/", "a", "word"):       "[]",
		path("/half/", "a", "word"):      "[]",
		"/half?h=" + linkHash("/half"):   "[]", // the secret has taken the sum's place
	} {
		equal(t, target, s.get(target).body, want)
	}
}

// The value that a subrequest evaluates first is kept.
func TestSecureLinkInSubrequest(t *testing.T) {
	s := serve(t, with(server(`
		secure_link $arg_h; secure_link_md5 $uri;
		location /page.html { auth_request /ask; auth_request_set $said $secure_link; root .; add_header X-Link "<$said$secure_link>"; }
		location = /ask { return 204; }`), "page.html", "page"))
	equal(t, "the link", s.get("/page.html?h="+linkHash("/page.html")).Header.Get("X-Link"), "<>")
}

// The configuration of nginx's documentation has the time by $secure_link_expires in the hash.
func TestSecureLinkExpiresInHash(t *testing.T) {
	s := serve(t, server(`location / {
		secure_link $arg_md5,$arg_expires; secure_link_md5 "$secure_link_expires$uri secret";
		if ($secure_link = "") { return 403; }
		if ($secure_link = "0") { return 410; }
		return 200 $secure_link_expires;
	}`))
	for expires, want := range map[string]int{afterAll: 200, longAgo: 410, "0": 403} {
		equal(t, expires, s.get("/a?md5="+linkHash(expires+"/a secret")+"&expires="+expires).StatusCode, want)
	}
	equal(t, "another time's hash", s.get("/a?md5="+linkHash(longAgo+"/a secret")+"&expires="+afterAll).StatusCode, 403)
}
