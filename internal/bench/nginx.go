package main

import "strings"

// nginxConf is that of an expert for this work: connections to the origin are kept, as each peer keeps them, buffers
// hold a large body, and nothing is written to temporary files.
const nginxConf = `
daemon off; pid nginx.pid; worker_processes 2; error_log stderr crit;
events { worker_connections 8000; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_buffer_size 64k; client_max_body_size 0; proxy_buffers 16 32k; proxy_max_temp_file_size 0;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream origin { server {{TARGET}}; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen {{ADDRESS}}{{TLS}};
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_request_buffering off; proxy_set_header Connection ""; }
  }
}
`

// startNginx runs the installed nginx in front of target.
func startNginx(name, target string) (*process, error) {
	tls := ""
	if strings.HasSuffix(name, secureSuffix) {
		tls = " ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem"
	}
	return startConfigured(strings.Replace(nginxConf, "{{TLS}}", tls, 1), target, nginxLine)
}

func nginxLine(dir, file string) []string {
	return []string{"nginx", "-p", dir, "-c", file, "-e", "stderr"}
}
