package engine

import (
	"net/http"
	"strings"
)

// redirectModule makes the URLs of redirects absolute.
var redirectModule = module{
	directives: []directive{
		{name: "absolute_redirect", compile: setFlag(redirectSlot, func(s *redirectSettings) *bool { return &s.absolute })},
		{name: "port_in_redirect", compile: setFlag(redirectSlot, func(s *redirectSettings) *bool { return &s.port })},
		{name: "server_name_in_redirect", compile: setFlag(redirectSlot, func(s *redirectSettings) *bool { return &s.serverName })},
	},
}

// redirectSettings are what a redirect's URL consists of.
type redirectSettings struct {
	absolute   bool // else only the path
	port       bool
	serverName bool // instead of the request's host
}

var redirectSlot = newSlot(redirectSettings{absolute: true, port: true})

// redirectTo redirects the client to a path of this server, with the query.
func redirectTo(x *exchange, w http.ResponseWriter, path string) int {
	if x.Args != "" {
		path += "?" + x.Args
	}
	return redirectAs(x, w, http.StatusMovedPermanently, path)
}

// redirectAs sets Location and leaves the page to the error pages.
func redirectAs(x *exchange, w http.ResponseWriter, status int, to string) int {
	if to != "" {
		x.madeAbsolute = redirectSlot.of(x.level).absolute && strings.HasPrefix(to, "/")
		w.Header().Set("Location", absoluteURL(x, to))
	}
	return status
}

// absoluteURL puts scheme, name and port in front of a path
// (ngx_http_header_filter).
func absoluteURL(x *exchange, to string) string {
	s := redirectSlot.of(x.level)
	if !s.absolute || !strings.HasPrefix(to, "/") {
		return to
	}
	host := x.Host
	if !x.named {
		host = x.ServerAddr()
	}
	if s.serverName {
		host = x.ServerName
	}
	port := x.ServerPort()
	standard := "80"
	if x.HTTPS {
		standard = "443"
	}
	if port == standard || port == "" || !s.port {
		return x.Scheme() + "://" + host + to
	}
	return x.Scheme() + "://" + host + ":" + port + to
}
