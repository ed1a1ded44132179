package upstream

import (
	"context"
	"net"
	"net/http"
	"time"
)

// newTransport returns a transport that forwards what it is given.
func newTransport(o Options, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(o.Protocol != H2C)
	protocols.SetHTTP2(o.Protocol == HTTP2)
	protocols.SetUnencryptedHTTP2(o.Protocol == H2C)
	own := dialConn(dial, max(0, o.WriteTimeout))
	return &http.Transport{
		DialContext:            own,
		DialTLSContext:         dialTLS(own, tlsConfig(o), o.DialTimeout),
		DisableCompression:     true,
		MaxIdleConnsPerHost:    o.MaxIdleConns,
		IdleConnTimeout:        o.IdleTimeout,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  max(0, o.HeaderTimeout),
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		ReadBufferSize:         4 << 10,
		WriteBufferSize:        32 << 10, // a small upload goes out in one piece with its head
		Protocols:              &protocols,
		// Without pings a peer that has died is noticed by TCP alone, after a
		// quarter of an hour (golang/go#36026).
		HTTP2: &http.HTTP2Config{SendPingTimeout: max(0, o.PingInterval), PingTimeout: max(0, o.PingInterval), WriteByteTimeout: max(0, o.WriteTimeout)},
	}
}
