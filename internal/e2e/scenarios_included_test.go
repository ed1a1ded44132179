package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const charsetConf = `http { access_log off; types { text/html html; text/css css; }
charset_map B A { 58 59; } charset_map latin utf-8 { E4 C3A4; 80 E282AC; }
server { listen {{LISTEN}}; root html;
  location / { charset A; source_charset B; }
  location /utf/ { charset utf-8; source_charset latin; alias html/; }
  location /latin/ { charset latin; source_charset utf-8; charset_types *; alias html/; }
  location /var/ { charset $arg_to; source_charset $arg_from; alias html/; }
  location /moved { charset A; source_charset B; error_page 404 =301 /x.html; return 404; }
  location /up/ { charset A; proxy_pass http://{{UP1}}/; }
  location /override/ { charset A; source_charset B; override_charset on; proxy_pass http://{{UP1}}/; }
  location /ranges/ { max_ranges 1; alias html/; }
  location /noranges/ { max_ranges 0; alias html/; }
} }
`

var charsetFiles = map[string]string{"html/x.html": "aXYX", "html/x.css": "X\xc3\xa4\xe2\x82\xac\xd0\xb9", "html/latin.html": "\xe4\x80\xff"}

var charsetSteps = append(gets("/x.html", "/x.css", "/utf/latin.html", "/latin/x.css", "/latin/x.html", "/var/x.html?from=b&to=a", "/var/x.html?from=c&to=C",
	"/var/x.html?from=c&to=a", "/moved", "/up/html", "/override/html", "/missing"),
	step{name: "HEAD", raw: request("HEAD", "/utf/latin.html", ""), methods: []string{"HEAD"}},
	step{name: "range", raw: get("/x.html", "Range: bytes=1-2")},
	step{name: "range of UTF-8", raw: get("/utf/latin.html", "Range: bytes=1-2")},
	step{name: "two ranges", raw: get("/ranges/x.html", "Range: bytes=0-0,2-2")},
	step{name: "one range", raw: get("/ranges/x.html", "Range: bytes=0-0")},
	step{name: "no range", raw: get("/noranges/x.html", "Range: bytes=0-0")},
)

const additionConf = `http { access_log off; types { text/html html; text/css css; } charset_map B A { 58 59; }
server { listen {{LISTEN}}; root html;
  location / { add_before_body /before; add_after_body /after.html; }
  location /types/ { addition_types text/css; add_after_body /after.html; alias html/; }
  location /recoded/ { charset A; source_charset B; add_after_body /after.html; alias html/; }
  location /missing/ { add_after_body /nowhere; alias html/; }
  location /up/ { add_after_body /part; proxy_pass http://{{UP1}}/; }
  location /part { proxy_pass http://{{UP2}}; }
  location /error.html { add_after_body /after.html; error_page 404 /x.html; return 404; }
  location = /before { return 200 "[before $args $request_method $request_uri]"; }
  location = /after.html { charset A; source_charset B; return 200 "[Xafter]"; }
} }
`

var additionSteps = append(gets("/x.html", "/x.css", "/types/x.css", "/types/x.html", "/recoded/x.html", "/missing/x.html", "/up/html", "/up/404", "/error.html", "/nothing.html", "/empty.html"),
	step{name: "HEAD", raw: request("HEAD", "/x.html", ""), methods: []string{"HEAD"}},
	step{name: "range", raw: get("/x.html", "Range: bytes=0-0")},
)

const ssiConf = `http { access_log off; types { text/html html; text/css css; } ssi on;
server { listen {{LISTEN}}; root html;
  location = /text { return 200 "[$request_method $uri $args]"; }
  location = /empty { return 200 ""; }
  location = /sets { set $shared yes; return 200 "set"; }
  location /silent/ { ssi_silent_errors on; alias html/; }
  location /types/ { ssi_types text/css; alias html/; }
  location /modified/ { ssi_last_modified on; alias html/; }
  location /up/ { proxy_pass http://{{UP1}}/; }
} }
`

var ssiDocuments = map[string]string{
	"echo":    `a<!--#echo var="arg_x" -->|<!--#echo var="none" -->|<!--#echo var="none" default="d" -->|<!--#echo var="ARG_X" encoding="url" -->|<!--#echo var="arg_x" encoding="none" -->b`,
	"set":     `<!--#set var="A" value="\$1 ${arg_x}\"$arg_x\a\\" --><!--#echo var="a" -->|<!--#set var="b" value="${c" -->`,
	"if":      `<!--#if expr="$arg_x = a" -->1<!--#elif expr="$arg_x != b" -->2<!--#elif expr="$arg_x=b" -->3<!--#else -->4<!--#endif -->5`,
	"regex":   `<!--#if expr="$arg_x = /(?P<n>b)(.)/" --><!--#echo var="0" -->-<!--#echo var="2" -->-<!--#echo var="n" -->-<!--#echo var="3" --><!--#endif -->`,
	"errors":  `<!--#config errmsg="E" --><!--#x --><!--#echo --><!--#echo x="" --><!--#echo var=a --><!--#if expr="a ~ b" --><!--#else --><!--#endif --><!--#include --><!--#include virtual="/a/../b" -->`,
	"time":    `<!--#config timefmt="%Y%%" --><!--#if expr="$date_gmt = /^20..%/" -->1<!--#endif --><!--#config timefmt="%A, %d %B" --><!--#if expr="$date_local = /^[A-Z][a-z]*day, [0-9]* [A-Z]/" -->2<!--#endif -->`,
	"include": `<!--#include virtual="/text?$args" -->|<!--#include file="part.html" -->|<!--#include virtual="part.html?x=$arg_x" wait="YES"-->|<!--#include virtual="/te%78t" -->|<!--#include virtual="/nowhere" -->|<!--#include virtual="/sets" wait="yes" --><!--#echo var="shared" -->`,
	"stored":  `<!--#include virtual="/text" set="v" --><!--#echo var="v" -->|<!--#include virtual="/nowhere" set="v" --><!--#echo var="v" -->`,
	"block":   `<!--#block name="b" -->a<!--#echo var='arg_x' --><!--#endblock --><!--#include virtual="/nowhere?x=1" stub="b" -->|<!--#include virtual="/text" stub="b" -->`,
	"up":      `<!--#include virtual="/up/html?a=1" wait="yes" -->|<!--#include virtual="/up/404" -->`,
	"loop":    `(<!--#include virtual="loop.html" -->)`,
	"part":    `[<!--#echo var="arg_x" -->]`,
	"plain":   `<!-- a comment --><!-<!---->`,
}

var ssiFiles = func() map[string]string {
	files := map[string]string{"html/x.css": ssiDocuments["echo"], "html/empty.html": ""}
	for name, document := range ssiDocuments {
		files["html/"+name+".html"] = document
	}
	return files
}()

var ssiSteps = append(gets("/echo.html?x=%3C1%3E", "/echo.html", "/set.html?x=y", "/if.html?x=a", "/if.html?x=b", "/if.html?x=c", "/regex.html?x=abc", "/errors.html", "/silent/errors.html", "/time.html", "/include.html?x=1",
	"/stored.html", "/block.html?x=2", "/up.html", "/loop.html", "/plain.html", "/empty.html", "/x.css?x=1", "/types/x.css?x=1", "/modified/echo.html"),
	step{name: "HEAD", raw: request("HEAD", "/echo.html", ""), methods: []string{"HEAD"}},
	step{name: "HTTP/1.0", raw: "GET /include.html HTTP/1.0\r\n\r\n"},
	step{name: "POST", raw: request("POST", "/up.html", "", "Content-Length: 0"), methods: []string{"POST"}},
)

const davConf = `http { access_log off; types { text/html html; } client_body_temp_path {{DIR}}/bodies;
server { listen {{LISTEN}}; root html; dav_methods PUT DELETE MKCOL COPY MOVE;
  location /full/ { create_full_put_path on; dav_access group:r all:r; }
  location /deep/ { min_delete_depth 3; }
  location /only/ { dav_methods PUT; }
  location /off/ { dav_methods off; }
  location = /gif { dav_methods off; empty_gif; }
  location /random/ { random_index on; }
} }
`

var davFiles = map[string]string{"html/a": "A", "html/dir/b": "B", "html/dir/sub/c": "C", "html/deep/x/y": "", "html/only/f": "", "html/random/one": "only one", "html/random/.hidden": "none", "html/random/dir/x": ""}

// davStep sends a request and then reads the file that it is about.
func davStep(method, target, body, read string, fields ...string) step {
	if body != "" || method == "PUT" {
		fields = append(fields, "Content-Length: "+strconv.Itoa(len(body)))
	}
	s := step{name: method + " " + target + " " + strings.Join(fields, " "), raw: request(method, target, body, fields...), methods: []string{method}}
	if read != "" {
		s.raw += get(read)
		s.methods = append(s.methods, "GET")
	}
	return s
}

// davSteps copy nothing into itself: 1.22 would not notice, as 1.31 does.
var davSteps = []step{
	davStep("PUT", "/new%20x", "text", "/new%20x"),
	davStep("PUT", "/new%20x", "", "/new%20x"),
	davStep("PUT", "/full/p/q", "text", "/full/p/q", "Date: Sun, 06 Nov 1994 08:49:37 GMT"),
	davStep("PUT", "/dir", "text", ""),
	davStep("PUT", "/dir/", "text", ""),
	davStep("PUT", "/x", "text", "", "Content-Range: bytes 0-3/4"),
	davStep("PUT", "/none/q", "text", ""),
	davStep("PUT", "/off/f", "text", ""),
	davStep("MKCOL", "/col/", "", ""),
	davStep("MKCOL", "/col/", "", ""),
	davStep("MKCOL", "/col2", "", ""),
	davStep("MKCOL", "/none/col/", "", ""),
	davStep("MKCOL", "/col3/", "body", ""),
	davStep("MKCOL", "/only/x/", "", ""),
	davStep("COPY", "/a", "", "/a2", "Destination: /a2"),
	davStep("COPY", "/a", "", "/a3", "Destination: http://gateway.example/a3"),
	davStep("COPY", "/a", "", "", "Destination: http://other/a3"),
	davStep("COPY", "/a", "", "", "Destination: /../../x"),
	davStep("COPY", "/a", "", ""),
	davStep("COPY", "/a", "", "", "Destination: /a4/"),
	davStep("COPY", "/a", "", "", "Destination: /dir"),
	davStep("COPY", "/none", "", "", "Destination: /x"),
	davStep("COPY", "/a", "", "", "Destination: /a2", "Overwrite: F"),
	davStep("COPY", "/a", "", "", "Destination: /a2", "Overwrite: x"),
	davStep("COPY", "/a", "", "", "Destination: /a2", "Depth: 1"),
	davStep("COPY", "/dir/", "", "/copy/sub/c", "Destination: /copy/"),
	davStep("COPY", "/dir/", "", "/copy/b", "Destination: /copy/"),
	davStep("MOVE", "/copy/", "", "/moved/sub/c", "Destination: /moved/"),
	davStep("MOVE", "/a3", "", "/new/a3", "Destination: /new/a3"),
	davStep("MOVE", "/a2", "", "", "Destination: /a2b", "Depth: 0"),
	davStep("DELETE", "/a2", "", "", "Depth: 1"),
	davStep("DELETE", "/a2", "body", ""),
	davStep("DELETE", "/a2", "", "/a2"),
	davStep("DELETE", "/a2", "", ""),
	davStep("DELETE", "/a/x", "", ""),
	davStep("DELETE", "/moved", "", ""),
	davStep("DELETE", "/moved/", "", "/moved/b"),
	davStep("DELETE", "/deep/x/", "", ""),
	davStep("DELETE", "/deep/x/y", "", ""),
	{name: "gif", raw: get("/gif")},
	{name: "gif since", raw: get("/gif", "If-Modified-Since: Mon, 28 Sep 1970 06:00:00 GMT")},
	{name: "random", raw: get("/random/")},
}

const browserConf = `http { access_log off; default_type text/plain; server { listen {{LISTEN}};
  modern_browser msie 5.5; modern_browser gecko 1.0.0; modern_browser konqueror 3; modern_browser_value new; ancient_browser_value old;
  location / { return 200 "$modern_browser|$ancient_browser|$msie"; }
  location /unlisted { modern_browser unlisted; ancient_browser netscape4 Links; return 200 "$modern_browser|$ancient_browser"; }
  location /opera { modern_browser opera 8; return 200 "$modern_browser"; }
  location /ancient { ancient_browser curl; return 200 "$modern_browser|$ancient_browser"; }
} }
`

var browserSteps = func() []step {
	var steps []step
	for _, agent := range []string{"", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", "Mozilla/4.0 (compatible; MSIE 5.01; Windows NT 5.1)", "Mozilla/4.0 (compatible; MSIE 6.0; X11) Opera 7.50", "Opera/8.0 (Windows NT 5.1; U; ru)",
		"Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.0.0) Gecko/20020610", "Mozilla/5.0 (X11; U; Linux i686; en-US; rv:0.9.9) Gecko/20020610", "Mozilla/5.0 (compatible; Konqueror/3.1; Linux)", "curl/8", "Links (2.1)", "Mozilla/4.72 [en] (X11)"} {
		for _, target := range []string{"/", "/unlisted", "/opera", "/ancient"} {
			if agent == "" {
				steps = append(steps, step{name: target, raw: get(target)})
				continue
			}
			steps = append(steps, step{name: target + " " + agent, raw: get(target, "User-Agent: "+agent)})
		}
	}
	return steps
}()

const sliceConf = `http { access_log off; types { text/html html; } server { listen {{LISTEN}};
  location / { slice 4; proxy_set_header Range $slice_range; proxy_pass http://{{LISTEN}}/files/; }
  location /unused/ { slice 4; proxy_pass http://{{LISTEN}}/files/; }
  location /files/ { alias html/; }
} }
`

var sliceFiles = map[string]string{"html/x.html": "0123456789abcdef", "html/empty.html": ""}

var sliceSteps = func() []step {
	steps := []step{
		{name: "HEAD", raw: request("HEAD", "/x.html", ""), methods: []string{"HEAD"}},
		{name: "whole", raw: get("/x.html")},
		{name: "missing", raw: get("/missing")},
		{name: "two ranges", raw: get("/x.html", "Range: bytes=1-2,4-5")},
	}
	for _, fields := range []string{"Range: bytes=5-6", "Range: bytes=3-8", "Range: bytes=-2", "Range: bytes=9-", "Range: bytes=0-0", "If-None-Match: \"none\"",
		"If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT"} {
		steps = append(steps, step{name: fields, raw: get("/x.html", fields)}, step{name: "unused " + fields, raw: get("/unused/x.html", fields)})
	}
	return steps
}()

const flvConf = `http { access_log off; types { video/x-flv flv; } server { listen {{LISTEN}}; root html; location / { flv; } } }
`

var flvSteps = append(gets("/x.flv", "/x.flv?start=4", "/x.flv?start=0", "/x.flv?start=10", "/x.flv?start=-4", "/none.flv", "/dir/"),
	step{name: "HEAD", raw: request("HEAD", "/x.flv?start=4", ""), methods: []string{"HEAD"}},
	step{name: "range", raw: get("/x.flv?start=4", "Range: bytes=11-14")},
	step{name: "POST", raw: request("POST", "/x.flv", "", "Content-Length: 0"), methods: []string{"POST"}},
)

const linksConf = `http { access_log off; types { text/html html; } server { listen {{LISTEN}}; root {{DIR}}/html;
  location /on/ { disable_symlinks on from=$document_root; }
  location /owners/ { disable_symlinks if_not_owner from=$document_root; }
  location /try/ { disable_symlinks on from=$document_root; try_files $uri $uri.html =404; }
  location /if/ { disable_symlinks on from=$document_root; if (-f $request_filename) { return 204; } return 404; }
  location /part/ { disable_symlinks on from=$document_root/part; }
} }
`

var linksFiles = map[string]string{"html/f": "text", "html/on/dir/index.html": "index", "html/owners/x": "", "html/try/own.html": "tried", "html/if/f": "", "html/part/x": ""}

// makeLinks makes links of the owner of what they lead to, and of others.
func makeLinks(t *testing.T, dir string) {
	at := func(name string) string { return filepath.Join(dir, "html", name) }
	err := errors.Join(os.Symlink("dir", at("on/to")), os.Symlink("on", at("part/on")))
	for _, in := range []string{"on", "owners", "try", "if", "part"} {
		err = errors.Join(err, os.Symlink("../f", at(in+"/own")), os.Symlink("../f", at(in+"/others")), os.Lchown(at(in+"/others"), 12345, 12345))
	}
	if err != nil {
		t.Fatal(err)
	}
}

var linksSteps = gets("/f", "/on/own", "/on/others", "/on/dir/", "/on/to/", "/on/to/index.html", "/on/to", "/on/none", "/on/own/x", "/owners/own", "/owners/others", "/try/own", "/try/others", "/if/f", "/if/own", "/part/own", "/part/x")
