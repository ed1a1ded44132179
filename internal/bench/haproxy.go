package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const haproxyConf = `
global
  maxconn 4096
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend in
  bind {{ADDRESS}}
  default_backend origin
backend origin
  http-reuse always
  server origin {{TARGET}}
`

// startHAProxy runs the installed HAProxy in front of target.
func startHAProxy(_, target string) (*process, error) {
	dir, err := os.MkdirTemp("", "culvert-bench-")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	conf := strings.NewReplacer("{{TARGET}}", target, "{{ADDRESS}}", address).Replace(haproxyConf)
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("haproxy", "-q", "-f", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{address: address, cmd: cmd, end: func() { _ = cmd.Process.Signal(os.Interrupt) }, dir: dir}
	if err := waitFor(address); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}
