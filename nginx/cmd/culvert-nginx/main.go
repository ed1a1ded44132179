// Command culvert-nginx runs an nginx.conf, with nginx's command line.
package main

import (
	"os"

	"github.com/culvert-go/culvert/nginx/command"
)

func main() { os.Exit(command.Run(os.Args[1:], os.Stdout, os.Stderr)) }
