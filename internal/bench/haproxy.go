package main

const haproxyConf = `
global
  maxconn 9000
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  timeout tunnel 600s
frontend in
  bind {{ADDRESS}}
  default_backend origin
backend origin
  http-reuse always
  server origin {{TARGET}}
`

// startHAProxy runs the installed HAProxy in front of target.
func startHAProxy(_, target string) (*process, error) {
	return startConfigured(haproxyConf, target, func(_, file string) []string {
		return []string{"haproxy", "-q", "-f", file}
	})
}
