package view_test

import (
	"log"
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// cordons is a Renderer that hides the nodes that an operator has taken out of a gateway.
type cordons struct {
	mu      sync.Mutex
	nodes   map[string]bool
	changed map[int]func(string) // of each View
	next    int
}

// Synced implements view.Renderer.
func (c *cordons) Synced() bool { return true }

// Group implements view.Renderer: nodes do not depend on each other.
func (c *cordons) Group(*watchcodec.Object) string { return "" }

// Render implements view.Renderer.
func (c *cordons) Render(items []view.Item, depends func(name string)) error {
	node := string(items[0].Object.Name())
	depends(node) // before it is read
	c.mu.Lock()
	defer c.mu.Unlock()
	items[0].Hidden = c.nodes[node]
	return nil
}

// Subscribe implements view.Renderer.
func (c *cordons) Subscribe(changed func(name string)) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id := c.next
	c.changed[id] = changed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.changed, id)
	}
}

// cordon hides a node. Clients that watch receive a DELETED event.
func (c *cordons) cordon(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[node] = true
	for _, changed := range c.changed {
		changed(node)
	}
}

// A gateway in front of an API server shows only some of the nodes, and which ones changes by state
// that the API server does not have.
func Example() {
	apiserver, err := upstream.New(upstream.Options{Scheme: "https"}, upstream.Target{Addr: "10.0.0.1:6443"})
	if err != nil {
		log.Fatal(err)
	}
	gateway, err := proxy.New(proxy.Options{Upstream: apiserver})
	if err != nil {
		log.Fatal(err)
	}
	hidden := &cordons{nodes: map[string]bool{}, changed: map[int]func(string){}}
	views, err := view.New(view.Options{Renderer: func(_ *http.Request, req watchcodec.Request) view.Renderer {
		if req.APIGroup == "" && req.Resource == "nodes" {
			return hidden
		}
		return nil // other resources pass
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer views.Close()
	s := &server.Server{Addr: "127.0.0.1:8443", Handler: views.Filter(gateway)}
	hidden.cordon("worker-7")
	_ = s // log.Fatal(s.ListenAndServeTLS("cert.pem", "key.pem"))
}
