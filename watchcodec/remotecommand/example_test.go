package remotecommand_test

import (
	"fmt"
	"log"
	"net/http"

	"github.com/culvert-go/culvert/watchcodec/remotecommand"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A gateway for terminals logs the messages that the server behind it would ignore silently.
func ExampleProtocol_Check() {
	_, err := wsupgrade.New(wsupgrade.Options{
		Observe: func(r *http.Request) *wsupgrade.Observer {
			protocol := remotecommand.Protocol(r.Header.Get("Sec-WebSocket-Protocol"))
			if !protocol.Known() {
				return nil // several are offered, or none: no Observer
			}
			return &wsupgrade.Observer{Message: func(m *wsupgrade.Message) error {
				if m.FromClient && (m.Type == wsupgrade.Text || m.Type == wsupgrade.Binary) {
					if err := protocol.Check(m.Type == wsupgrade.Text, m.Data); err != nil {
						log.Printf("%s: %v", r.URL.Path, err)
					}
				}
				return nil
			}}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The size that a web terminal sends on the channel Resize.
func ExampleParseSize() {
	size, err := remotecommand.ParseSize([]byte(`{"Width":80,"Height":24}`))
	fmt.Printf("%+v %v\n", size, err)
	// Output: {Width:80 Height:24} <nil>
}
