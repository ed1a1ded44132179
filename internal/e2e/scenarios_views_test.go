package e2e

// What configurations in public have, where only the place, the spelling or the repetition of a field differs.
const viewsConf = `http { access_log off; default_type text/plain; gzip on; gzip_min_length 1; gzip_types text/plain;
map $http_upgrade $connection_upgrade { default upgrade; "" close; }
server { listen {{LISTEN}}; root html; proxy_http_version 1.1;
  location /client { proxy_pass http://{{UP1}}; proxy_set_header X-A a; proxy_set_header Host b; proxy_set_header Connection $http_connection; }
  location /mapped { proxy_pass http://{{UP1}}; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }
  location /fixed { proxy_pass http://{{UP1}}; proxy_set_header Connection "Upgrade"; }
  location /vary/ { gzip_vary on; proxy_pass http://{{UP1}}/; }
  location /vary/own/ { gzip_vary on; alias html/; }
  location /vary/off/ { gzip_vary off; alias html/; }
  location /204 { add_header X-A a; add_header Cache-Control no-store; add_header Content-Type text/x; add_header Vary x; return 204; }
  location /expires { expires 1h; add_header X-A a; add_header Cache-Control public; return 204; }
  location /304 { add_header X-A a; proxy_pass http://{{UP1}}/304-typed; }
  location /moved { return 301 /x; } } }
`

var viewsSteps = []step{
	{name: "Connection of the client", raw: get("/client", "Connection: close")},
	{name: "keep-alive of the client", raw: get("/client", "Connection: Keep-Alive")},
	{name: "no Connection of the client", raw: get("/client")},
	{name: "Connection of a map", raw: get("/mapped")},
	{name: "Connection without an upgrade", raw: get("/fixed")},
	{name: "Vary of both", raw: get("/vary/varying", "Accept-Encoding: gzip")},
	{name: "Vary", raw: get("/vary/own/noext")},
	{name: "no Vary", raw: get("/vary/off/noext", "Accept-Encoding: gzip")},
	{name: "added fields", raw: get("/204")},
	{name: "expires and an added field", raw: get("/expires")},
	{name: "relayed 304", raw: get("/304")},
	{name: "own 304", raw: get("/noext", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT")},
	{name: "Expect", raw: request("PUT", "/moved", "abc", "Content-Length: 3", "Expect: 100-continue"), methods: []string{"PUT"}},
}
