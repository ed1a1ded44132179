package e2e

// Responses of upstreams that are written to files, which other locations serve.
const storeConf = `http { access_log off; gzip on; gzip_types *; gzip_min_length 1;
server { listen {{LISTEN}}; root html;
  location /a/ { proxy_pass http://{{UP1}}; proxy_store on; proxy_store_access group:r all:r; }
  location /b/ { proxy_pass http://{{UP1}}; proxy_store {{DIR}}/html/stored$uri; }
  location /none/ { proxy_pass http://{{UP1}}; proxy_store $arg_to; }
  location /off/ { proxy_store on; location /off/off/ { proxy_pass http://{{UP1}}; proxy_store off; } proxy_pass http://{{UP1}}; }
  location /dead/ { proxy_pass http://{{DEAD}}; proxy_store on; }
  location /files/ { alias {{DIR}}/html/; etag off; add_header Last-Modified ""; }
}
}
`

var storeSteps = append(gets("/a/x", "/files/a/x", "/a/x?again", "/files/a/x", "/b/c/d", "/files/stored/b/c/d", "/files/b/c/d", "/none/x", "/off/x", "/files/off/x", "/off/off/x", "/files/off/off/x", "/dead/x", "/files/dead/x"),
	step{name: "HEAD", raw: request("HEAD", "/a/head", ""), methods: []string{"HEAD"}},
	step{name: "of HEAD", raw: get("/files/a/head")},
)
