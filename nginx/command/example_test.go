package command_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/command"
)

// The test of a configuration, as of "nginx -t".
func ExampleRun() {
	dir, err := os.MkdirTemp("", "nginx")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	text := "events {}\nhttp {\n  server {\n    listen 127.0.0.1:8080;\n    retrun 204;\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(text), 0o600); err != nil {
		panic(err)
	}
	var stderr bytes.Buffer
	status := command.Run([]string{"-t", "-p", dir, "-c", "nginx.conf"}, os.Stdout, &stderr)
	fmt.Print(strings.ReplaceAll(stderr.String(), dir, "/etc/nginx"))
	fmt.Println("exit status", status)
	// Output:
	// nginx: [notice] implemented: events, http, listen, server
	// nginx: [emerg] unknown directive "retrun" in /etc/nginx/nginx.conf:5
	// nginx: configuration file /etc/nginx/nginx.conf test failed
	// exit status 1
}

// A program that serves its own configuration, with nginx's signals and pid file.
func ExampleServe() {
	status := command.Serve(nginx.Options{File: "/etc/app/nginx.conf"}, func() { log.Print("the addresses are bound") })
	os.Exit(status)
}
