package e2e

import (
	"fmt"
	"os"
	"strings"
)

// source is the configuration from the source of this project, verbatim.
func source(file string) string {
	content, err := os.ReadFile("../../nginx/testdata/" + file)
	if err != nil {
		panic(err)
	}
	text := strings.NewReplacer("127.0.0.1:PORT1", "{{UP1}}", "127.0.0.1:PORT2", "{{UP2}}").Replace(string(content))
	return strings.Replace(text, "\nserver {", "\nserver {\n  listen {{LISTEN}};", 1)
}

func httpBlock(body string) string { return "http {\naccess_log off;\n" + body + "\n}\n" }

// proxied is a server that proxies everything to the first upstream.
func proxied(extra string) string {
	return httpBlock(`server { listen {{LISTEN}}; location / { proxy_pass http://{{UP1}}; ` + extra + ` } }`)
}

func scenarios() []scenario {
	return append(projects(), []scenario{
		{name: "AccidentTomcat404/as it is", conf: httpBlock(source("source.conf")), files: assets, steps: sourceSteps},
		{name: "AccidentTomcat404/without the Upgrade lines", conf: httpBlock(source("source_without_upgrade.conf")), files: assets, steps: sourceSteps},
		{name: "targets", conf: proxied(""), steps: targetSteps()},
		{name: "messages", conf: proxied(""), steps: messageSteps},
		{name: "responses", conf: proxied(""), steps: responseSteps()},
		{name: "refused", conf: refusedConf, steps: refusedSteps, log: "access.log"},
		{name: "hosts", conf: hostConf, steps: hostSteps(), log: "access.log"},
		{name: "static", conf: staticConf, files: assets, steps: staticSteps},
		{name: "locations", conf: locationConf, files: assets, steps: gets("/", "/exact", "/exact/", "/pre", "/pre/x", "/pre/x.php", "/stop/x.php", "/x.php", "/X.PHP", "/x.PHP", "/case", "/nested/a", "/nested/b/c", "/%65xact", "//exact", "/a/../exact", "/a/./exact")},
		{name: "names", conf: nameConf, steps: nameSteps},
		{name: "map", conf: mapConf, steps: mapSteps},
		{name: "proxy_pass with a URI", conf: passConf, steps: gets("/a/x", "/a/x%2Fy?q=1", "/a/", "/a", "/b/x", "/b/", "/c", "/c/d?x", "/a/b%20c/../d", "/plain/x%2Fy//z")},
		{name: "proxy_set_header", conf: setHeaderConf, steps: setHeaderSteps},
		{name: "add_header", conf: addHeaderConf, files: assets, steps: gets("/ok", "/410", "/404", "/204", "/always/410", "/inner/ok", "/missing.html", "/return", "/redirect")},
		{name: "expires", conf: expiresConf, files: assets, steps: gets("/epoch", "/max", "/off", "/negative", "/zero", "/410", "/inherited", "/replaced")},
		{name: "return", conf: returnConf, steps: gets("/204", "/200", "/302", "/301", "/url", "/444", "/410", "/503", "/text", "/var?x=1")},
		{name: "error_page", conf: errorPageConf, files: assets, steps: gets("/missing", "/other", "/coded", "/named", "/external", "/keep", "/dead", "/intercepted/404")},
		{name: "log_format", conf: logConf, files: assets, log: "access.log", steps: logSteps},
		{name: "TLS", conf: tlsConf, files: certificates(), steps: tlsSteps},
		{name: "TLS versions, suites and groups", conf: tlsChoiceConf, files: certificates(), steps: tlsChoiceSteps},
		{name: "ip_hash", conf: hashConf("server {{UP1}}; server {{UP2}}; server {{UP3}};"), steps: hashSteps()},
		{name: "ip_hash with weights", conf: hashConf("server {{UP1}} weight=3; server {{UP2}}; server {{UP3}} weight=2;"), steps: hashSteps()},
		{name: "ip_hash with a server down", conf: hashConf("server {{UP1}}; server {{UP2}} down; server {{UP3}};"), steps: hashSteps()},
		{name: "ip_hash with a dead server", conf: hashConf("server {{UP1}}; server {{DEAD}}; server {{UP3}};"), steps: hashSteps()},
		{name: "hash", conf: keyConf("", "server {{UP1}}; server {{UP2}}; server {{UP3}};"), steps: keySteps()},
		{name: "hash with weights", conf: keyConf("", "server {{UP1}} weight=3; server {{UP2}}; server {{UP3}} weight=2;"), steps: keySteps()},
		{name: "hash with a server down", conf: keyConf("", "server {{UP1}}; server {{UP2}} down; server {{UP3}};"), steps: keySteps()},
		{name: "hash with a dead server", conf: keyConf("", "server {{UP1}}; server {{DEAD}}; server {{UP3}};"), steps: keySteps()},
		{name: "round robin with weights", conf: `http { access_log off; upstream group { server {{UP1}} weight=5; server {{UP2}}; server {{UP3}} weight=2; }
server { listen {{LISTEN}}; location / { proxy_pass http://group; } } }`, steps: repeat(20, gets("/turn"))},
		{name: "round robin with retries", conf: retriesConf, steps: repeat(20, gets("/x", "/404", "/x", "/503", "/x"))},
		{name: "chunks for nothing", conf: chunksConf, files: assets, steps: chunksSteps},
		{name: "parts of films", conf: mp4Conf, files: mp4Files, steps: mp4Steps},
		{name: "stored responses", conf: storeConf, files: assets, steps: storeSteps},
		{name: "regular expressions", conf: regexpConf, files: assets, steps: regexpSteps},
		{name: "rewrite, if and set", conf: rewriteConf, files: assets, steps: rewriteSteps},
		{name: "raw paths", conf: rawPathConf, files: assets, steps: rawPathSteps},
		{name: "include", conf: includeConf, files: includeFiles, steps: includeSteps},
		{name: "gzip", conf: gzipConf, files: assets, steps: gzipSteps},
		{name: "real_ip", conf: realIPConf, steps: realIPSteps, log: "access.log"},
		{name: "allow and deny", conf: accessConf, files: assets, steps: accessSteps},
		{name: "auth_basic", conf: authConf, files: authFiles, steps: authSteps()},
		{name: "least_conn", conf: `http { access_log off; upstream group { least_conn; server {{UP1}}; server {{UP2}} down; server {{UP3}} backup; }
server { listen {{LISTEN}}; location / { proxy_pass http://group; } } }`, steps: repeat(6, gets("/one"))},
		{name: "proxy", conf: proxyConf, files: assets, steps: proxySteps},
		{name: "bodies", conf: bodiesConf, log: "access.log", steps: bodiesSteps()},
		{name: "upstream variables", conf: upstreamVariablesConf, files: assets, log: "access.log", steps: upstreamVariablesSteps},
		{name: "variables", conf: variablesConf, files: assets, log: "access.log", steps: variablesSteps},
		{name: "variables of TLS", conf: tlsVariablesConf, files: certificates(), log: "access.log", steps: tlsVariablesSteps},
		{name: "upgrades", conf: upgradesConf, steps: upgradesSteps},
		{name: "TLS to upstreams", conf: upstreamTLSConf, files: authority.files, steps: upstreamTLSSteps},
		{name: "resolver", conf: resolverConf, steps: resolverSteps},
		{name: "limits", conf: limitConf, files: authFiles, steps: limitSteps},
		{name: "auth_request", conf: authRequestConf, files: assets, steps: authRequestSteps},
		{name: "programs", conf: programsConf, files: programsFiles, prepare: startPrograms, steps: programsSteps},
		{name: "mirror", conf: mirrorConf, steps: mirrorSteps},
		{name: "sub_filter", conf: subConf, files: assets, steps: subSteps},
		{name: "addition", conf: additionConf, files: map[string]string{"html/x.html": "Xe", "html/x.css": "css", "html/empty.html": ""}, steps: additionSteps},
		{name: "ssi", conf: ssiConf, files: ssiFiles, steps: ssiSteps},
		{name: "dav, empty_gif and random_index", conf: davConf, files: davFiles, steps: davSteps},
		{name: "browser", conf: browserConf, steps: browserSteps},
		{name: "slice", conf: sliceConf, files: sliceFiles, steps: sliceSteps},
		{name: "flv", conf: flvConf, files: map[string]string{"html/x.flv": "0123456789", "html/dir/index.html": "index"}, steps: flvSteps},
		{name: "disable_symlinks", conf: linksConf, files: linksFiles, prepare: makeLinks, steps: linksSteps},
		{name: "charset", conf: charsetConf, files: charsetFiles, steps: charsetSteps},
		{name: "content", conf: contentConf, files: contentFiles, steps: contentSteps},
		{name: "autoindex", conf: autoindexConf, files: autoindexFiles, prepare: growTree, zone: "Europe/Berlin", steps: autoindexSteps},
		{name: "geo and split_clients", conf: geoConf, files: map[string]string{"geo.conf": "203.0.113.0/24 more;\n"}, steps: geoSteps},
		{name: "client certificates", conf: clientCertificateConf, files: authority.files, steps: clientCertificateSteps},
		{name: "PROXY protocol", conf: proxyProtocolConf, steps: proxyProtocolSteps},
		{name: "unix listener", conf: unixConf, files: unixFiles, log: "access.log", steps: unixSteps()},
		{name: "secure_link", conf: secureLinkConf, files: assets, log: "access.log", steps: secureLinkSteps()},
		{name: "found by chance", conf: foundConf, files: assets, log: "access.log", steps: foundSteps},
		{name: "underscores", conf: underscoresConf, steps: underscoresSteps},
		{name: "views", conf: viewsConf, files: assets, steps: viewsSteps},
		{name: "details", conf: detailsConf, files: assets, steps: detailsSteps},
		{name: "small directives", conf: smallConf, files: assets, steps: smallSteps},
		{name: "dead upstreams", conf: deadConf, steps: repeat(6, gets("/turns"))},
	}...)
}

var assets = map[string]string{
	"html/index.html":     "<h1>index</h1>",
	"html/page.html":      "<h1>page</h1>",
	"html/style.css":      "body { color: red }",
	"html/data.bin":       strings.Repeat("0123456789", 100),
	"html/noext":          "plain",
	"html/sub/index.html": "sub",
	"html/empty/x":        "x",
	"html/50x.html":       "our 50x",
	"html/404.html":       "our 404",
}

// gets makes a step of each target.
func gets(targets ...string) []step {
	steps := make([]step, len(targets))
	for i, target := range targets {
		steps[i] = step{name: "GET " + target, raw: get(target)}
	}
	return steps
}

func repeat(n int, steps []step) []step {
	var all []step
	for i := range n {
		for _, s := range steps {
			s.name = fmt.Sprintf("%s #%d", s.name, i+1)
			all = append(all, s)
		}
	}
	return all
}

var sourceSteps = []step{
	{name: "plain", raw: get("/serviceName/x")},
	{name: "upgrade", raw: webSocketRequest("/serviceName/ws")},
	{name: "upgrade elsewhere", raw: webSocketRequest("/serviceName/other/ws")},
	{name: "HEAD", raw: request("HEAD", "/serviceName/x", ""), methods: []string{"HEAD"}},
	{name: "404", raw: get("/serviceName/404")},
	{name: "410", raw: get("/serviceName/410")},
	{name: "not in any location", raw: get("/nowhere")},
	{name: "missing asset", raw: get("/missing.css")},
	{name: "asset", raw: get("/style.css")},
	{name: "encoded", raw: get("/serviceName/a%2Fb%20c;d=1//e")},
	{name: "query", raw: get("/serviceName/x?z=1&a=2&sig=%zz")},
	{name: "two on one connection", raw: get("/serviceName/1") + get("/serviceName/2"), methods: []string{"GET", "GET"}},
	{name: "chunked body", raw: request("POST", "/serviceName/x", "5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), methods: []string{"POST"}},
}

func targetSteps() []step {
	return gets("/a%2Fb", "/a%20b", "/a;b=c", "//a//b", "/a/../b", "/a/./b", "/a|b", "/a\xc3\xa9", "/%C3%A9", "/a+b", "/a:b@c", "/%41",
		"/?z=1&a=2&sig=%zz", "/?", "/??", "/x?a=b?c", "/x?a[]=1&b={}", "/x?%00", "/'\"<>", "/a%", "/%zz", "/%00")
}

var messageSteps = []step{
	{name: "Content-Length", raw: request("POST", "/x", "hello", "Content-Length: 5", "Content-Type: text/plain"), methods: []string{"POST"}},
	{name: "empty POST", raw: request("POST", "/x", "", "Content-Length: 0"), methods: []string{"POST"}},
	{name: "chunked", raw: request("PUT", "/x", "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), methods: []string{"PUT"}},
	{name: "DELETE", raw: request("DELETE", "/x", ""), methods: []string{"DELETE"}},
	{name: "OPTIONS", raw: request("OPTIONS", "/x", ""), methods: []string{"OPTIONS"}},
	{name: "unknown method", raw: request("BREW", "/x", ""), methods: []string{"BREW"}},
	{name: "HEAD", raw: request("HEAD", "/x", ""), methods: []string{"HEAD"}},
	{name: "fields", raw: get("/x", "Accept: */*", "Cookie: a=1; b=2", "X-Custom: one", "User-Agent: e2e", "Accept-Encoding: br", "Range: bytes=0-1", "If-None-Match: \"x\"")},
	{name: "repeated fields", raw: get("/x", "X-Two: 1", "X-Two: 2")},
	{name: "forwarded fields", raw: get("/x", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.1")},
	{name: "named in Connection", raw: get("/x", "Connection: X-Forwarded-For, X-Secret", "X-Forwarded-For: 192.0.2.1", "X-Secret: 1")},
	{name: "hop-by-hop", raw: get("/x", "Keep-Alive: 5", "TE: trailers", "Proxy-Connection: keep-alive")},
	{name: "h2c", raw: get("/x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")},
	{name: "expect", raw: request("POST", "/x", "hello", "Content-Length: 5", "Expect: 100-continue"), methods: []string{"POST"}},
	{name: "close", raw: get("/x", "Connection: close")},
	{name: "HTTP/1.0", raw: "GET /x HTTP/1.0\r\nHost: gateway.example\r\n\r\n"},
	{name: "HTTP/1.0 keep-alive", raw: "GET /x HTTP/1.0\r\nHost: gateway.example\r\nConnection: keep-alive\r\n\r\n"},
	{name: "HTTP/1.0 without Host", raw: "GET /x HTTP/1.0\r\n\r\n"},
	{name: "HTTP/1.0 upgrade", raw: strings.Replace(webSocketRequest("/ws"), "HTTP/1.1", "HTTP/1.0", 1)},
	{name: "absolute form", raw: "GET http://other.example/x?y HTTP/1.1\r\nHost: gateway.example\r\n\r\n"},
	{name: "no Host", raw: "GET /x HTTP/1.1\r\n\r\n"},
	{name: "two Hosts", raw: "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
	{name: "pipelined", raw: get("/1") + get("/2") + get("/3"), methods: []string{"GET", "GET", "GET"}},
	{name: "length and chunked", raw: request("POST", "/x", "0\r\n\r\n", "Content-Length: 5", "Transfer-Encoding: chunked"), methods: []string{"POST"}},
	{name: "two lengths", raw: request("POST", "/x", "hello", "Content-Length: 5", "Content-Length: 6"), methods: []string{"POST"}},
	{name: "unknown coding", raw: request("POST", "/x", "", "Transfer-Encoding: gzip, chunked"), methods: []string{"POST"}},
	{name: "bad chunk", raw: request("POST", "/x", "zz\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), methods: []string{"POST"}},
	{name: "bad head", raw: "GET /x HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"},
	{name: "space before colon", raw: "GET /x HTTP/1.1\r\nHost: a\r\nX-A : b\r\n\r\n"},
	{name: "garbage", raw: "\x16\x03\x01\x02\x00\r\n\r\n"},
	{name: "body over the limit", raw: request("POST", "/x", "", "Content-Length: 2000000"), methods: []string{"POST"}},
}

func responseSteps() []step {
	return gets("/404", "/410", "/410-fresh", "/500", "/204", "/304", "/redirect", "/elsewhere", "/cookies", "/hop", "/chunked", "/trailer", "/eof",
		"/early-hints", "/half", "/garbage", "/status099", "/bighead", "/reset", "/close")
}

// Retries and failures that take nothing out leave each next turn where nginx has it.
const retriesConf = `http { access_log off; proxy_next_upstream error http_503 http_404; proxy_next_upstream_tries 2;
upstream group { server {{UP1}} weight=3 max_fails=0; server {{UP2}} max_fails=1000; server {{UP3}} weight=2 max_fails=0; server {{DEAD}} weight=4 max_fails=2; }
server { listen {{LISTEN}}; location / { proxy_pass http://group; } } }
`

const deadConf = `http { access_log off;
upstream group { server {{UP1}}; server {{DEAD}}; server {{UP2}} backup; }
server { listen {{LISTEN}}; location / { proxy_pass http://group; } } }
`
