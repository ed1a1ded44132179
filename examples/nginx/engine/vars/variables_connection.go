package vars

import (
	"cmp"
	"crypto/tls"
	"net"
	"os"
	"strconv"
	"strings"
)

// NginxVersion is the version of nginx whose behaviour is kept; it is the
// value of $nginx_version.
const NginxVersion = "1.29.7"

var connectionVariables = map[string]Getter{
	"binary_remote_addr":  known(binaryRemoteAddr),
	"connection":          known(func(r *Request) string { return strconv.FormatUint(r.Conn.Serial, 10) }),
	"connection_requests": known(func(r *Request) string { return strconv.FormatInt(r.Conn.Requests.Load(), 10) }),
	"hostname":            known(hostname),
	"https":               nonEmpty(https),
	"nginx_version":       known(func(*Request) string { return NginxVersion }),
	"pid":                 known(func(*Request) string { return strconv.Itoa(os.Getpid()) }),
	"pipe":                known(func(*Request) string { return "." }),
	"realip_remote_addr":  known(func(r *Request) string { host, _ := r.peer(); return host }),
	"realip_remote_port":  known(func(r *Request) string { _, port := r.peer(); return port }),
	"remote_addr":         known((*Request).RemoteAddr),
	"remote_port":         known(remotePort),
	"scheme":              known((*Request).Scheme),
	"server_addr":         known((*Request).ServerAddr),
	"server_port":         known((*Request).ServerPort),
	"server_protocol":     known(func(r *Request) string { return r.HTTP.Proto }),
	"ssl_cipher":          nonEmpty(sslCipher),
	"ssl_protocol":        nonEmpty(sslProtocol),
	"ssl_server_name":     nonEmpty(sslServerName),
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

func remotePort(r *Request) string {
	_, port := splitAddr(r.HTTP.RemoteAddr)
	if port == "0" {
		return "" // a proxy has told the address alone
	}
	return port
}

// binaryRemoteAddr is the address in 4 or 16 bytes; that of a unix socket is a text.
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

func sslCipher(r *Request) string {
	if r.HTTP.TLS == nil {
		return ""
	}
	return tls.CipherSuiteName(r.HTTP.TLS.CipherSuite)
}

// sslProtocol writes TLSv1.3 as nginx does, not "TLS 1.3".
func sslProtocol(r *Request) string {
	if r.HTTP.TLS == nil {
		return ""
	}
	return "TLSv" + tls.VersionName(r.HTTP.TLS.Version)[len("TLS "):]
}

func sslServerName(r *Request) string {
	if r.HTTP.TLS == nil {
		return ""
	}
	return r.HTTP.TLS.ServerName
}

// peer is the connection's other end.
func (r *Request) peer() (host, port string) {
	return splitAddr(cmp.Or(r.PeerAddr, r.HTTP.RemoteAddr))
}
