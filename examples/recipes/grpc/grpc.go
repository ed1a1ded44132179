// Package grpc forwards gRPC: unary calls and streams, with their trailers.
package grpc

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// options are those of a group of servers that speak gRPC without TLS, balanced call by call. With TLS it is Scheme "https" and
// upstream.HTTP2.
var options = upstream.Options{
	Name:          "grpc",
	Protocol:      upstream.H2C,
	Balance:       upstream.LeastConn(),
	Check:         &upstream.Check{GRPC: true},
	HeaderTimeout: -1,              // a server sends the header of a stream with its first message
	PingInterval:  6 * time.Minute, // servers end connections with more than a few pings within 5 minutes
}

// Targets returns a group with the options.
func Targets(targets ...upstream.Target) (*upstream.Group, error) {
	return upstream.New(options, targets...)
}

// Server returns a server for clients that speak HTTP/2, with and without TLS. A stream may be silent for any time; what is
// bounded is how long a client may read nothing.
func Server(group *upstream.Group) (*server.Server, error) {
	handler, err := proxy.New(proxy.Options{
		Upstream:    group,
		ReadTimeout: -1, // a client may send nothing on a stream for hours
	})
	if err != nil {
		return nil, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &server.Server{
		Handler:           filters.NewChain().Then(handler),
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: time.Minute, SendPingTimeout: time.Minute},
	}, nil
}
