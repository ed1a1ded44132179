package command_test

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
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

// A binary like nginx's, with a handler of its own for "culvert_handler hello;".
func ExampleRunWith() {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello from", r.URL.Path) })
	program := nginx.Options{Handlers: map[string]http.Handler{"hello": hello}}
	os.Exit(command.RunWith(program, os.Args[1:], os.Stdout, os.Stderr))
}

// A program that serves its own configuration, with nginx's signals and pid file.
func ExampleServe() {
	status := command.Serve(nginx.Options{File: "/etc/app/nginx.conf"}, func() { log.Print("the addresses are bound") })
	os.Exit(status)
}
