package vars

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// NginxVersion is the version of nginx whose behaviour is implemented, the value of
// $nginx_version.
const NginxVersion = "1.31.5"

var connectionVariables = map[string]Getter{
	"binary_remote_addr":  known(binaryRemoteAddr),
	"connection":          known(func(r *Request) string { return strconv.FormatUint(r.Conn.Serial, 10) }),
	"connection_time":     known(connectionTime),
	"http2":               known(http2),
	"http3":               known(http3),
	"connection_requests": known(func(r *Request) string { return strconv.FormatInt(r.Conn.Requests.Load(), 10) }),
	"hostname":            known(hostname),
	"https":               nonEmpty(https),
	"nginx_version":       known(func(*Request) string { return NginxVersion }),
	"pid":                 known(func(*Request) string { return strconv.Itoa(os.Getpid()) }),
	"pipe":                known(pipe),
	"remote_addr":         known((*Request).RemoteAddr),
	"remote_port":         known(remotePort),
	"scheme":              known((*Request).Scheme),
	"server_addr":         known((*Request).ServerAddr),
	"server_port":         known((*Request).ServerPort),
	"server_protocol":     nonEmpty(func(r *Request) string { return r.HTTP.Proto }),
}

// Scheme returns http or https.
func (r *Request) Scheme() string {
	if r.HTTPS {
		return "https"
	}
	return "http"
}

func https(r *Request) string {
	if r.HTTPS {
		return "on"
	}
	return ""
}

// connectionTime returns how long the client's connection has been open.
func connectionTime(r *Request) string {
	if r.Conn.Born.IsZero() {
		return Seconds(0)
	}
	return Seconds(time.Since(r.Conn.Born))
}

// http2 returns "h2" over TLS, "h2c" without, and "" for HTTP/1.
func http2(r *Request) string {
	switch {
	case r.HTTP.ProtoMajor != 2:
		return ""
	case r.HTTPS:
		return "h2"
	}
	return "h2c"
}

// http3 returns "h3" for HTTP/3.
func http3(r *Request) string {
	if r.HTTP.ProtoMajor == 3 {
		return "h3"
	}
	return ""
}

func remotePort(r *Request) string {
	_, port := SplitAddr(r.HTTP.RemoteAddr)
	if port == "0" {
		return "" // a proxy has reported only the address
	}
	return port
}

// binaryRemoteAddr returns the address in 4 or 16 bytes; that of a unix socket is a text.
func binaryRemoteAddr(r *Request) string {
	if strings.HasPrefix(r.HTTP.RemoteAddr, unixPrefix) {
		return r.HTTP.RemoteAddr
	}
	ip := net.ParseIP(r.RemoteAddr())
	if v4 := ip.To4(); v4 != nil {
		return string(v4)
	}
	return string(ip)
}

func hostname(*Request) string {
	name, _ := os.Hostname()
	return name
}
