package netloop_test

import (
	"fmt"
	"net"
	"time"

	"github.com/culvert-go/culvert/internal/netloop"
)

// A server lets a connection wait between its requests. The function that serves a request ends
// then, and is called again with the next one.
func ExampleWaiter() {
	var idle netloop.Set // one for all connections
	conn, client := dialled()
	done := make(chan struct{})

	var w netloop.Waiter
	serve := func(why netloop.Reason) {
		buf := make([]byte, 64) // none is held between two requests
		if n, err := conn.Read(buf); why == netloop.Readable && err == nil {
			fmt.Printf("request: %s\n", buf[:n])
			_ = w.Wait(time.Minute)
			return
		}
		_ = conn.Close() // the client has closed the connection, or has sent nothing for a minute
		close(done)
	}
	if err := w.Init(&idle, conn, serve); err != nil {
		panic(err) // a server would wait in Read
	}
	_ = w.Wait(time.Minute)

	fmt.Fprint(client, "hello")
	client.Close()
	<-done
	// Output: request: hello
}

// dialled returns both ends of a connection.
func dialled() (server, client net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		panic(err)
	}
	if server, err = listener.Accept(); err != nil {
		panic(err)
	}
	return server, client
}
