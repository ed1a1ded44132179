package wstest_test

import (
	"fmt"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// Client, gateway and target are in one process and connected in memory, so that a test of a gateway can run in a bubble of
// testing/synctest.
func Example() {
	target := wstest.NewTarget(func(c *websocket.Conn) {
		if kind, message, err := c.ReadMessage(); err == nil {
			_ = c.WriteMessage(kind, append([]byte("heard "), message...))
		}
	})
	defer target.Close()
	upgrades, err := wsupgrade.New(wsupgrade.Options{Dial: target.Dial})
	if err != nil {
		fmt.Println(err)
		return
	}
	gateway := wstest.Serve(upgrades.Handler(target.URL()))
	defer gateway.Close()

	conn, _, err := gateway.Dial("/chat", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_ = conn.WriteMessage(websocket.TextMessage, []byte("hello"))
	_, message, err := conn.ReadMessage()
	fmt.Println(string(message), err)
	// Output: heard hello <nil>
}
