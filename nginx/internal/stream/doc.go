// Package stream proxies connections of TCP and sessions of UDP as nginx's stream modules do. Package engine compiles the
// directives of a configuration into Ports and Servers; this package runs what is accepted at them.
//
// A Session goes through nginx's phases: the header of the PROXY protocol, the client's address, set, limits, access, TLS, the
// preread of a ClientHello, the content (a Proxy, Return or Pass), and the log.
package stream
