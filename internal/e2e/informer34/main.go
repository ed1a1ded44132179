// Command informer34 is an informer of EndpointSlices by an older client-go. For each line
// that it reads it prints what its store has and what its handlers were called with, as JSON.
//
// It is a module of its own, since a module has one version of client-go.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// state is what is printed, by the names of slices.
type state struct{ Store, Handled map[string]string }

func shown(s *discoveryv1.EndpointSlice) string {
	line := fmt.Sprint(s.Generation)
	for _, e := range s.Endpoints {
		line += " " + e.Addresses[0]
	}
	return line
}

func main() {
	server := flag.String("server", "", "the `URL` of the server")
	contentType := flag.String("type", "", "the `media type` that is requested")
	flag.Parse()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: *server, ContentConfig: rest.ContentConfig{ContentType: *contentType, AcceptContentTypes: *contentType + ",application/json"}})
	if err != nil {
		log.Fatal(err)
	}
	var mu sync.Mutex
	handled := map[string]string{}
	set := func(o any) {
		mu.Lock()
		defer mu.Unlock()
		handled[o.(*discoveryv1.EndpointSlice).Name] = shown(o.(*discoveryv1.EndpointSlice))
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Discovery().V1().EndpointSlices().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, o any) { set(o) }, DeleteFunc: func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		mu.Lock()
		defer mu.Unlock()
		delete(handled, o.(*discoveryv1.EndpointSlice).Name)
	}})
	if err != nil {
		log.Fatal(err)
	}
	factory.Start(make(chan struct{}))
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		store := map[string]string{}
		for _, o := range informer.GetStore().List() {
			store[o.(*discoveryv1.EndpointSlice).Name] = shown(o.(*discoveryv1.EndpointSlice))
		}
		mu.Lock()
		err := out.Encode(state{store, handled})
		mu.Unlock()
		if err != nil {
			log.Fatal(err)
		}
	}
}
