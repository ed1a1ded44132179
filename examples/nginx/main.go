// Command nginx runs an nginx.conf with culvert. Without arguments it serves a
// demonstration on 127.0.0.1:8080.
package main

import (
	"os"

	"github.com/culvert-go/culvert/examples/nginx/command"
)

func main() {
	os.Exit(command.Run(os.Args[1:], os.Stdout, os.Stderr))
}
