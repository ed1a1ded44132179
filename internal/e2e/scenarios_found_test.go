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
}
}
`

var foundSteps = append(gets("/inside/", "/inside/deep/", "/inside/x.php", "/except/", "/over/x"),
	step{name: "POST inside", raw: request("POST", "/except/", "", "Content-Length: 0"), methods: []string{"POST"}},
)
