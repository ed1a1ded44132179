package e2e

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const secureLinkConf = `http { default_type text/plain;
log_format link "$uri [$secure_link] [$secure_link_expires]"; access_log access.log link;
secure_link_secret both; secure_link $arg_h; secure_link_md5 "$uri of http";
server { listen {{LISTEN}}; server_name links;
  secure_link $arg_h,$arg_e; secure_link_md5 "$arg_e$uri $remote_addr secret";
  location / { return 200 "[$secure_link] [$secure_link_expires]"; }
  location /before/ { return 200 "[$secure_link_expires] [$secure_link] [$secure_link_expires]"; }
  location /one/ { secure_link $arg_h; return 200 "[$secure_link] [$secure_link_expires]"; }
  location /sum/ { secure_link_md5 "other $uri"; return 200 "[$secure_link]"; }
  location /documented/ { secure_link_md5 "$secure_link_expires$uri$remote_addr secret"; return 200 "[$secure_link] [$secure_link_expires]"; }
  location /cookie/ { secure_link $cookie_link; secure_link_md5 fixed; return 200 "[$secure_link] [$secure_link_expires]"; }
  location /path/ { location ~ ^/path/([^/]*) { secure_link $1; secure_link_md5 fixed; return 200 "[$secure_link]"; } }
  location /guard/ {
    error_page 403 410 /sorry;
    if ($secure_link = "") { return 403; }
    if ($secure_link = "0") { return 410; }
    alias html/;
  }
  location = /sorry { secure_link_secret x; return 200 "sorry [$secure_link] [$secure_link_expires]"; }
  location /named/ { error_page 404 = @named; secure_link $arg_h,$arg_e; set $before $secure_link; return 404; }
  location @named { return 200 "named [$before] [$secure_link] [$secure_link_expires]"; }
  location /auth/ { auth_request /ask; auth_request_set $said $secure_link; alias html/; add_header X-Link "$said [$secure_link] [$secure_link_expires]"; }
  location = /ask { secure_link_md5 none; return 204; }
  location /p/ { secure_link_secret word; return 200 "[$secure_link] [$secure_link_expires]";
    location /p/inner/ { return 200 "inner [$secure_link]"; }
    location /p/back/ { secure_link $arg_h; secure_link_md5 "$uri back"; return 200 "back [$secure_link]"; }
    location /p/half/ { secure_link $arg_h; return 200 "half [$secure_link]"; }
  }
  location /files/ { secure_link_secret word; if ($secure_link = "") { return 403; } rewrite ^ /$secure_link last; }
  location /empty/ { secure_link_secret ""; return 200 "[$secure_link]"; }
}
server { listen {{LISTEN}}; server_name inherits; return 200 "[$secure_link]"; }
server { listen {{LISTEN}}; server_name secret; secure_link_secret word; return 200 "[$secure_link]"; }
}
`

// linkHash is the hash of a link as secure_link_md5 wants it.
func linkHash(text string) string {
	sum := md5.Sum([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// secretPath is a path as secure_link_secret wants it.
func secretPath(prefix, link, secret string) string {
	sum := md5.Sum([]byte(link + secret))
	return prefix + hex.EncodeToString(sum[:]) + "/" + link
}

func secureLinkSteps() []step {
	const future, past = "4102444800", "1000000000"
	sum := func(uri, expires string) string { return linkHash(expires + uri + " 127.0.0.1 secret") }
	good := sum("/x", future)
	steps := gets("/x?h="+good+"&e="+future, "/x?h="+sum("/x", past)+"&e="+past, "/x?h="+linkHash("no")+"&e="+future, "/x", "/x?e="+future, "/x?h="+sum("/x", ""), "/x?h="+good+"&e="+past, "/y?h="+good+"&e="+future,
		"/x?h="+strings.ToLower(good)+"&e="+future, "/x?h="+good+"==&e="+future, "/x?h="+good+"=&e="+future, "/x?h="+good+"=x&e="+future, "/x?h="+good+"===&e="+future, "/x?h="+good+"=xy&e="+future, "/x?h="+good[:21]+"&e="+future, "/x?h="+good[:20]+"&e="+future, "/x?h="+good+"A&e="+future, "/x?h="+good+"AA&e="+future,
		"/x?h=%21&e="+future, "/x?h=!!!!&e="+future, "/x?h=%2B%2F&e="+future, "/x?h=++//"+good[4:]+"&e="+future, "/x?h=&e="+future)
	for _, expires := range []string{"0", "-1", "+4102444800", "x", "4102444800x", " 4102444800", "04102444800", "9223372036854775807", "9223372036854775808", "99999999999999999999", past + "," + past, "1_000", "0x7fffffff"} {
		uri := "/x"
		steps = append(steps, gets(uri+"?h="+sum(uri, expires)+"&e="+strings.ReplaceAll(expires, " ", "%20"), uri+"?h="+linkHash(strings.ReplaceAll(expires, " ", "%20")+uri+" 127.0.0.1 secret")+"&e="+strings.ReplaceAll(expires, " ", "%20"))...)
	}
	steps = append(steps, gets("/before/?h="+sum("/before/", future)+"&e="+future, "/one/a?h="+sum("/one/a", ""), "/one/a?h="+sum("/one/a", future)+"&e="+future, "/one/a?h="+linkHash("no"), "/one/a?h=a,"+future, "/one/a?h="+sum("/one/a", "")+","+future,
		"/sum/a?h="+linkHash("other /sum/a")+"&e="+future, "/sum/a?h="+linkHash("other /sum/a")+"&e="+past, "/path/"+linkHash("fixed"), "/path/"+linkHash("fixed")+","+past, "/path/"+linkHash("fixed")[:21]+"%0a"+linkHash("fixed")[21:], "/path/x%0a",
		"/documented/?h="+linkHash(future+"/documented/127.0.0.1 secret")+"&e="+future, "/documented/?h="+linkHash(past+"/documented/127.0.0.1 secret")+"&e="+past, "/documented/?h="+linkHash(past+"/documented/127.0.0.1 secret")+"&e="+future,
		"/guard/page.html?h="+sum("/guard/page.html", future)+"&e="+future, "/guard/page.html?h="+sum("/guard/page.html", past)+"&e="+past, "/guard/page.html",
		"/named/?h="+sum("/named/", future)+"&e="+future, "/named/?h="+sum("/named/", past)+"&e="+past, "/auth/page.html?h="+sum("/auth/page.html", future)+"&e="+future)...)
	sum32 := secretPath("/p/", "a", "word")
	steps = append(steps, gets(sum32, secretPath("/p/", "a/b%20c?d=e&f", "word"), secretPath("/p/", "a/../b", "word"), secretPath("/p/", "a//b", "word"), secretPath("/p/", "", "word"), secretPath("/p/", "a", "other"), strings.ToUpper(sum32[:35])+sum32[35:], strings.Replace(sum32, "/p/", "/p/x", 1), strings.Replace(sum32, "/p/", "/p//", 1), strings.Replace(sum32, "/p/", "//p/", 1), sum32+"x",
		"/p/", "/p/x", "/p/x/y", "/p/"+strings.Repeat("g", 32)+"/a", strings.TrimSuffix(sum32, "/a"), "/p/inner/"+sum32[3:], secretPath("/p/back/", "a", "word"), "/p/back/a?h="+linkHash("/p/back/a back"), "/p/half/a?h="+linkHash(" /p/half/a"), "/p/half/a?h="+sum("/p/half/a", ""),
		secretPath("/files/", "x", "word"), secretPath("/files/", "p/"+sum32[3:], "word"), secretPath("/files/", "x", "no"), secretPath("/empty/", "a", ""), secretPath("/empty/", "a", "x"))...)
	for _, host := range []string{"inherits", "secret"} {
		for _, target := range []string{secretPath("/p/", "a", "word"), secretPath("/p/", "a", "both"), "/x?h=" + linkHash("/x of http")} {
			steps = append(steps, step{name: host + target, raw: "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"})
		}
	}
	steps = append(steps,
		step{name: "cookie", raw: get("/cookie/", "Cookie: link="+linkHash("fixed")+","+future)},
		step{name: "cookie of long ago", raw: get("/cookie/", "Cookie: link="+linkHash("fixed")+",1")},
		step{name: "cookie with a blank", raw: get("/cookie/", "Cookie: link="+linkHash("fixed")+", 5")},
		step{name: "absolute form", raw: "GET http://gateway.example" + sum32 + " HTTP/1.1\r\nHost: gateway.example\r\n\r\n"},
	)
	for i := range steps {
		steps[i].local = "127.0.0.1"
	}
	return steps
}
