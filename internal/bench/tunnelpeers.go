package main

import (
	"net/http"
	"net/url"

	"github.com/culvert-go/culvert/wsupgrade"
)

// The peers of the tunnels that the rest of the program knows by name.
const (
	loopsName    = "culvert, loops"
	portableName = "culvert, portable"
	blockingName = "culvert, blocking"
)

// tunnelPeers are who is compared at WebSockets.
func tunnelPeers() []peer {
	return []peer{
		{name: loopsName, start: startSelf},
		{name: portableName, start: startSelf},
		{name: blockingName, start: startSelf},
		{name: portableName + secureSuffix, start: startSelf},
		{name: "ReverseProxy", start: startSelf},
		{name: "ReverseProxy" + secureSuffix, start: startSelf},
		{name: "apimachinery", start: startSelf},
		{name: relayName, start: startSelf},
		{name: "haproxy", start: startHAProxy, missing: notInstalled("haproxy")},
		{name: "nginx", start: startTunnelNginx, missing: notInstalled("nginx")},
	}
}

// tunnels makes a culvert handler: on the engine of the system or the portable one, and
// with a handler that returns or one that blocks.
func tunnels(portable, blocking bool) func(target string) (http.Handler, error) {
	return func(target string) (http.Handler, error) {
		f, err := wsupgrade.New(wsupgrade.Options{Portable: portable})
		if err != nil {
			return nil, err
		}
		if blocking {
			return f.Handler(&url.URL{Scheme: "http", Host: target}), nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start(f, target, w, r)
		}), nil
	}
}

// tunnelNginxConf forwards upgrades as nginx's documentation has it.
const tunnelNginxConf = `
daemon off; pid nginx.pid; worker_processes auto; error_log stderr crit; worker_rlimit_nofile 20000;
events { worker_connections 18000; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  map $http_upgrade $connection_upgrade { default upgrade; '' close; }
  server {
    listen {{ADDRESS}};
    location / { proxy_pass http://{{TARGET}}; proxy_http_version 1.1; proxy_read_timeout 600s; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }
  }
}
`

func startTunnelNginx(_, target string) (*process, error) {
	return startConfigured(tunnelNginxConf, target, nginxLine)
}
