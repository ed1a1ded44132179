package main

import (
	"fmt"
	"net"
)

// acceptAll is the other end of startSelf for servers that are no http.Handler: it
// prints its address and serves each connection until its standard input ends.
func acceptAll(serve func(net.Conn)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		obey(nil)
		l.Close()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil
		}
		go serve(conn)
	}
}
