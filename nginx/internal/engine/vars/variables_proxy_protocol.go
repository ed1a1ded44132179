package vars

import "net"

var proxyProtocolVariables = map[string]Getter{
	"proxy_protocol_addr":        proxyProtocol(false, 0),
	"proxy_protocol_port":        proxyProtocol(false, 1),
	"proxy_protocol_server_addr": proxyProtocol(true, 0),
	"proxy_protocol_server_port": proxyProtocol(true, 1),
}

// proxyProtocol returns a Getter of the client's, or the server's, address or port.
func proxyProtocol(server bool, part int) Getter {
	return nonEmpty(func(r *Request) string {
		addr, to := r.Conn.ProxyAddrs()
		if server {
			addr = to
		}
		if addr == nil {
			return ""
		}
		host, port, err := net.SplitHostPort(addr.String())
		if err != nil {
			return ""
		}
		return [2]string{host, port}[part]
	})
}
