package engine

// proxyProtocolField is the real_ip_header of "listen … proxy_protocol".
const proxyProtocolField = "proxy_protocol"

// proxyProtocolLines returns the client's address as a list of one.
func proxyProtocolLines(x *exchange) []string {
	client, _ := x.Conn.ProxyAddrs()
	if client == nil {
		return nil
	}
	return []string{client.String()}
}
