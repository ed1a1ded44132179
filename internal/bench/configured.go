package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startConfigured runs an installed server with a configuration, in which ADDRESS
// and TARGET are filled in, in a directory of its own.
func startConfigured(conf, target string, command func(dir, file string) []string) (*process, error) {
	dir, err := os.MkdirTemp("", "culvert-bench-")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	conf = strings.NewReplacer("{{TARGET}}", target, "{{ADDRESS}}", address, "{{DIR}}", dir).Replace(conf)
	file := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	if err := writeSelfSigned(dir); err != nil {
		return nil, err
	}
	if err := writeFiles(filepath.Join(dir, "files")); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers have another user
		return nil, err
	}
	line := command(dir, file)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{address: address, secure: strings.Contains(conf, address+" ssl"), cmd: cmd, end: func() { _ = cmd.Process.Signal(syscall.SIGTERM) }, dir: dir}
	if err := waitFor(address); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// writeFiles writes files of 1 KiB and 1 MiB, with their sizes as their names.
func writeFiles(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, n := range []int{1 << 10, 1 << 20} {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), bytes.Repeat([]byte("culvert\n"), n/8), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// waitFor waits until a server listens.
func waitFor(address string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("no server listens on %s", address)
}
