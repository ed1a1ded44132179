package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A group of two targets that keeps each client with its target, behind any mux.
func Example() {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.RequestURI, r.Header.Get("X-Forwarded-Host"))
	}))
	defer app.Close()

	upstream, err := upstream.New(
		upstream.Options{Name: "app", Balance: upstream.IPHash()},
		upstream.Target{Addr: app.Listener.Addr().String(), Weight: 2},
		upstream.Target{Addr: "127.0.0.1:9", Down: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer upstream.Close()
	handler, err := proxy.New(proxy.Options{
		Upstream: upstream,
		OnError:  func(r *http.Request, err *culvert.Error) { log.Printf("%s: %v", r.URL.Path, err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	gateway := httptest.NewServer(handler)
	defer gateway.Close()

	req, _ := http.NewRequest("GET", gateway.URL+"/a%2Fb?z=1&a=2", nil)
	req.Host = "shop.test"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	// Output: /a%2Fb?z=1&a=2 for shop.test
}
