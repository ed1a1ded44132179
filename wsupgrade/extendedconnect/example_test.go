package extendedconnect_test

import (
	"log"
	"net/http"

	_ "github.com/culvert-go/culvert/wsupgrade/extendedconnect" // browsers open WebSockets over HTTP/2
)

// The server of a gateway for WebSockets over HTTP/2: a stream that is not read does not hold up the
// others of its connection.
func Example() {
	server := &http.Server{
		Addr:  ":8443",
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	log.Fatal(server.ListenAndServeTLS("cert.pem", "key.pem"))
}
