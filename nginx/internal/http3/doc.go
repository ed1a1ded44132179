// Package http3 serves HTTP/3 on sockets that outlive configurations, by quic-go.
//
// A Socket reads the datagrams of one address. Each configuration that has the address serves it by a Server: the last one
// accepts connections, and the former ones end theirs. Each connection has an http3.Server of quic-go for itself, so that
// GOAWAY can be sent on it alone.
//
// What quic-go decides: congestion control, the sizes of datagrams, segmentation offload, connection IDs, migration of
// clients, that at most three times the bytes of an unverified client are sent to it, and what a malformed request or
// frame ends, the stream or the connection. It decodes fields with the static table of QPACK alone.
package http3
