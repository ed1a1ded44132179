package e2e

// What random configurations and requests have found to differ.

const foundConf = `http { default_type text/plain;
log_format found '$http_x_id'; access_log access.log found;
server { listen {{LISTEN}}; root html;
  location /inside/ { internal; return 200 inside;
    location /inside/deep/ { return 200 deep; }
    location ~ \.php$ { return 200 script; } }
  location /except/ { internal; limit_except GET { allow all; } return 200 inside; }
  location /over/ { rewrite ^/over/(.*)$ /inside/deep/$1 last; }
  location /real/ { proxy_pass http://{{UP1}}; }
}
}
`

var foundSteps = append(gets("/inside/", "/inside/deep/", "/inside/x.php", "/except/", "/over/x"),
	step{name: "X-Real-IP", raw: get("/real/x", "X-Real-IP: 192.0.2.1")},
	step{name: "POST inside", raw: request("POST", "/except/", "", "Content-Length: 0"), methods: []string{"POST"}},
)
