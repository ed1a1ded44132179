// Command nginx runs an nginx.conf with culvert. Without arguments it serves a
// demonstration on 127.0.0.1:8080.
package main

import (
	"os"
	"runtime"

	"github.com/culvert-go/culvert/examples/nginx/command"
)

// spare is how much the collector takes for kept beside what is.
const spare = 8 << 20

func main() {
	// Of a gateway's memory next to nothing is kept, and so the collector, which runs whenever the heap
	// has doubled, would run every few hundred requests: a tenth of all work. This is never touched, so
	// that it takes no memory, but lets as much garbage wait. What is kept may grow: unlike
	// a higher GOGC, it stays the same then.
	waiting := make([]byte, spare)
	code := command.Run(os.Args[1:], os.Stdout, os.Stderr)
	runtime.KeepAlive(waiting)
	os.Exit(code)
}
