package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

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
	dir, err := os.MkdirTemp("", "culvert-bench-")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	conf := strings.NewReplacer("{{TARGET}}", target, "{{ADDRESS}}", address).Replace(nginxConf)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // its workers have another user
		return nil, err
	}
	cmd := exec.Command("nginx", "-p", dir, "-c", file, "-e", "stderr")
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

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// waitFor waits until somebody listens.
func waitFor(address string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("nobody listens on %s", address)
}
