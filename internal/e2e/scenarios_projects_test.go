package e2e

import (
	"os"
	"strings"
)

// project is a scenario of testdata/projects: a configuration written after those of real
// projects.
func project(name string, steps []step) scenario {
	read := func(file string) string {
		text, err := os.ReadFile("testdata/projects/" + file)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	files := map[string]string{"mime.types": read("mime.types"), "html/app.3f2a.js": strings.Repeat("var a = 1;\n", 20), "users": authFiles["users"]}
	for name, content := range assets {
		files[name] = content
	}
	return scenario{name: "project/" + name, conf: read(name + ".conf"), files: files, steps: append(steps, everywhere...)}
}

// everywhere are requests that each project gets.
var everywhere = append(gets("/", "/page.html", "/style.css", "/missing.png", "/a%2Fb/c%20d?x=%2F&y", "/.git/config", "//double//slash", "/410", "/500"),
	step{name: "HEAD", raw: request("HEAD", "/page.html", ""), methods: []string{"HEAD"}},
	step{name: "POST", raw: request("POST", "/api/x", "a=b", "Content-Length: 3", "Content-Type: application/x-www-form-urlencoded"), methods: []string{"POST"}},
	step{name: "WebSocket", raw: webSocketRequest("/x/ws")},
	step{name: "two on one connection", raw: get("/page.html") + get("/missing.png"), methods: []string{"GET", "GET"}},
	step{name: "in gzip", raw: get("/page.html", "Accept-Encoding: gzip, br")},
)

func onHost(host, target string, lines ...string) string {
	return strings.Replace(get(target, lines...), "gateway.example", host, 1)
}

func projects() []scenario {
	return []scenario{
		project("wiki", append(gets("/wiki/Main_Page", "/wiki/A%20page?action=edit", "/wiki/A%2FB", "/README", "/cache/x", "/images/page.html", "/images/none", "/index.php?title=x", "/none/page", "/sub", "/sub/", "/app.3f2a.js", "/missing.css", "/wiki/x/500"),
			step{name: "modified since", raw: get("/style.css", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT")},
			step{name: "script in gzip", raw: get("/app.3f2a.js", "Accept-Encoding: gzip")})),
		project("registry", append(gets("/v2/", "/healthz", "/v1/"),
			step{name: "an old client", raw: get("/v2/", "User-Agent: docker/1.5.0")},
			step{name: "with a password", raw: get("/v2/x", "User-Agent: docker/20.10", credentials("plain:secret"))},
			step{name: "an error", raw: get("/v2/404", credentials("plain:secret"))},
			step{name: "upload", raw: request("PATCH", "/v2/blobs/x", "5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked", credentials("plain:secret")), methods: []string{"PATCH"}},
			step{name: "large upload", raw: request("PUT", "/v2/blobs/x", strings.Repeat("x", 2<<20), "Content-Length: 2097152", credentials("plain:secret")), methods: []string{"PUT"}})),
		project("forge", append(gets("/group/project", "/assets/app.css", "/a/b/info/refs?service=git-upload-pack", "/a/b/git-upload-pack", "/x?private_token=secret&a=b", "/intercepted/404", "/intercepted/500", "/404.html", "/redirect", "/cookies"),
			step{name: "old name", raw: onHost("old.forge.example", "/a%20b?c")},
			step{name: "push", raw: request("POST", "/a/b/git-receive-pack", "5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), methods: []string{"POST"}},
			step{name: "live", raw: webSocketRequest("/-/cable/ws")})),
		project("dashboard", append(gets("/dash/", "/dash/d/abc?orgId=1", "/dash/api/x%2Fy", "/public/style.css", "/public/", "/index.html", "/sub/"),
			step{name: "client", raw: get("/dash/x", "X-Forwarded-For: 192.0.2.7, 127.0.0.5")},
			step{name: "metrics from outside", raw: get("/metrics", "X-Forwarded-For: 192.0.2.7")},
			step{name: "live", raw: webSocketRequest("/dash/api/live/ws")})),
		project("media", append(gets("/web/index.html", "/files/page.html", "/library/movies/x", "/chunked", "/eof", "/big"),
			step{name: "range", raw: get("/files/data.bin", "Range: bytes=100-199")},
			step{name: "two ranges", raw: get("/library/movies/x", "Range: bytes=0-1")},
			step{name: "socket", raw: webSocketRequest("/socket/ws")})),
		project("notebooks", append(gets("/hub/home", "/hub/login", "/user/ann/tree", "/user/ann/api/kernels/1234/channels", "/shared/report?x=1", "/shared/410", "/validate", "/.well-known/x"),
			step{name: "kernel", raw: webSocketRequest("/user/ann/api/kernels/1234/channels/ws")},
			step{name: "terminal", raw: webSocketRequest("/user/ann/terminals/websocket/ws")})),
		project("spa", append(gets("/index.html", "/deep/link", "/assets/app.3f2a.js", "/assets/missing.js", "/api/x?y=1", "/api/404", "/api/redirect", "/app.js.map", "/download/page.html", "/sub/", "/protected/cookies"),
			step{name: "preflight", raw: request("OPTIONS", "/api/x", "", "Origin: https://app.example"), methods: []string{"OPTIONS"}},
			step{name: "preflight of a stranger", raw: request("OPTIONS", "/api/x", "", "Origin: https://evil.test"), methods: []string{"OPTIONS"}},
			step{name: "origin", raw: get("/api/410", "Origin: https://app.example")},
			step{name: "script in gzip", raw: get("/app.3f2a.js", "Accept-Encoding: gzip")})),
	}
}
