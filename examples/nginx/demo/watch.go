package demo

import (
	"fmt"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
)

// pause is the time between two events of the watch.
const pause = 400 * time.Millisecond

// watch answers as a kube-apiserver answers a watch of EndpointSlices: an event
// at a time, each in a chunk of its own, with pauses between them.
func watch(w http.ResponseWriter, r *http.Request) {
	events, err := watchcodec.NewWriter(w)
	if err != nil {
		return // the client has gone
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i, kind := range []string{"ADDED", "ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK"} {
		if i > 0 {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
		if events.WriteEvent(sliceEvent(kind, i)) != nil {
			return
		}
	}
}

// sliceEvent is an event about one of two EndpointSlices.
func sliceEvent(kind string, i int) []byte {
	version := 4711 + i
	if kind == "BOOKMARK" {
		return fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"%d"},"addressType":"","endpoints":null,"ports":null}}`, version)
	}
	return fmt.Appendf(nil, `{"type":%q,"object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"console-%d","namespace":"default","resourceVersion":"%d","labels":{"kubernetes.io/service-name":"console"}},"addressType":"IPv4","endpoints":[{"addresses":["10.244.%d.7"],"conditions":{"ready":true},"nodeName":"node%d"}],"ports":[{"name":"http","protocol":"TCP","port":8080}]}}`,
		kind, i%2+1, version, i%2, i%2)
}
