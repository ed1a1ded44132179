//go:build !unix

package command

import (
	"fmt"
	"io"
	"os"

	"github.com/culvert-go/culvert/nginx"
)

func detach(_ []string, stderr io.Writer) int {
	fmt.Fprintln(stderr, "nginx: [emerg] \"daemon on\" is not supported on this system")
	return 1
}

func detached() *os.File { return nil }

func sayReady(*os.File, *nginx.Server) {}
