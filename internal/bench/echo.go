package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
)

const echoName = "echo"

// echo is the origin of tunnels: it accepts a handshake and sends every byte back.
func echo(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 1<<10)
	request, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	sum := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:])); err != nil {
		return
	}
	_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{r}, make([]byte, 4<<10))
}
