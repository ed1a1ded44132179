package main

import (
	"crypto/tls"
	"fmt"
	"net"
)

// listen opens the address for the node's clients. They send tokens to it, so that without TLS it
// must be on loopback.
func listen(s *settings) (net.Listener, error) {
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, err
	}
	if s.tlsCert == "" {
		if addr, ok := l.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
			l.Close()
			return nil, fmt.Errorf("-listen %s: tokens would pass in the clear; give -tls-cert and -tls-key, or a loopback address", s.listen)
		}
		return l, nil
	}
	certificate, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("-tls-cert %s: %w", s.tlsCert, err)
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}), nil
}
