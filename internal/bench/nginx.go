package main

// nginxConf is the usual one for this work, with the connections to the origin
// kept, as everybody else keeps theirs.
const nginxConf = `
daemon off; pid nginx.pid; worker_processes auto; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; client_body_buffer_size 64k; keepalive_requests 1000000000;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream origin { server {{TARGET}}; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen {{ADDRESS}};
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`

// startNginx runs the installed nginx in front of target.
func startNginx(_, target string) (*process, error) {
	return startConfigured(nginxConf, target, nginxLine)
}

func nginxLine(dir, file string) []string {
	return []string{"nginx", "-p", dir, "-c", file, "-e", "stderr"}
}
