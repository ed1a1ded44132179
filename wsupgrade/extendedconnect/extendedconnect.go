// Package extendedconnect makes net/http's HTTP/2 servers accept extended CONNECT requests (RFC
// 8441), by which browsers open WebSockets over HTTP/2:
//
//	import _ "github.com/culvert-go/culvert/wsupgrade/extendedconnect"
//
// Without it, or GODEBUG=http2xconnect=1 in the environment of the process, servers do not
// advertise them, and browsers open an HTTP/1.1 connection for each WebSocket, which works as well.
//
// It affects the whole process, so it belongs into a program's main package. A handler that does
// not expect it may receive requests with the method CONNECT and a field ":protocol"; package proxy
// refuses those that it does not forward. A GODEBUG that names http2xconnect itself is not changed.
//
// net/http reads the setting once, when it is initialised. Packages are initialised
// in the order of their import paths as far as their imports allow (the Go
// specification, "Program initialization"), so this one, which imports next to
// nothing, comes before net/http.
//
// One WebSocket that is not read must not hold up the others of its connection: set
// http.Server.HTTP2 to &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}. By default a single
// stream may use up the connection's whole buffer.
package extendedconnect

import (
	"os"
	"strings"
)

const setting = "http2xconnect"

func init() {
	debug := os.Getenv("GODEBUG")
	if strings.Contains(debug, setting+"=") {
		return
	}
	if debug != "" {
		debug += ","
	}
	_ = os.Setenv("GODEBUG", debug+setting+"=1")
}
