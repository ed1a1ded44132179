package wstest_test

import (
	"fmt"
	"net/http"

	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// A target that refuses the handshake: what does the client of the gateway see?
func ExampleNewRawTarget() {
	target := wstest.NewRawTarget(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "sign in first", http.StatusUnauthorized)
	}))
	defer target.Close()
	upgrades, err := wsupgrade.New(wsupgrade.Options{Dial: target.Dial})
	if err != nil {
		fmt.Println(err)
		return
	}
	gateway := wstest.Serve(upgrades.Handler(target.URL()))
	defer gateway.Close()
	_, resp, err := gateway.Dial("/chat", nil)
	fmt.Println(resp.StatusCode, err)
	// Output: 401 websocket: bad handshake
}
