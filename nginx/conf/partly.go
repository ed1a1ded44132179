package conf

import (
	"os"
	"slices"
	"strings"
)

// ownFields are the fields of proxy_set_header that the proxy sets itself: they frame a message,
// or are about one connection.
var ownFields = []string{"content-length", "keep-alive", "te", "trailer", "transfer-encoding"}

// notFollowed returns what of an implemented directive is not followed; "" if all is.
func notFollowed(d *Directive) string {
	args := d.Args
	switch {
	case d.Name == "listen" && slices.Contains(args, "quic"):
		return noQUIC
	case d.Name == "error_page" && len(args) > 0 && slices.Contains(args[:len(args)-1], "497"):
		return "net/http itself responds to plain HTTP on a TLS port"
	case d.Name == "proxy_set_header" && len(args) == 2 && args[1] != "" && slices.Contains(ownFields, strings.ToLower(args[0])):
		return "the framing of a message and the fields of one connection are the proxy's"
	case d.Name == "proxy_http_version" && slices.Equal(args, []string{"1.0"}):
		return "upstreams are sent HTTP/1.1"
	case d.Name == "access_log" && slices.ContainsFunc(args[min(2, len(args)):], compressesLog):
		return "lines are written at once, not compressed"
	}
	return ""
}

func compressesLog(parameter string) bool {
	return parameter == "gzip" || strings.HasPrefix(parameter, "gzip=")
}

// userClass returns the class of "user", which matters if root starts the process.
func userClass(d *Directive) (Class, string) {
	if os.Geteuid() == 0 && len(d.Args) > 0 && d.Args[0] != "root" {
		return Passed, "culvert keeps running as root and reads every file: " + noOps["user"]
	}
	return NoOp, noOps["user"]
}
