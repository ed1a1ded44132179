// Command nginx runs an nginx.conf with culvert. Without arguments it serves a
// demonstration on 127.0.0.1:8080.
package main

import (
	"fmt"
	"os"

	"github.com/culvert-go/culvert/examples/nginx/demo"
	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/command"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(command.Run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(demonstrate())
}

// demonstrate serves the demonstration until a signal ends it, and returns the exit status.
func demonstrate() int {
	d, err := demo.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	defer d.Close()
	status := command.Serve(nginx.Options{Prefix: d.Dir, File: d.File}, func() { d.Announce(os.Stdout) })
	if status != 0 {
		fmt.Fprintf(os.Stderr, "The demonstration wants %s. If something else listens there, stop it, or choose another address:\n  %s=127.0.0.1:8081 go run ./examples/nginx\n",
			d.Address, demo.AddressVariable)
	}
	return status
}
