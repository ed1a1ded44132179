package filters_test

import (
	"fmt"
	"net/http"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

func ExampleForwardAuth() {
	group, err := upstream.New(upstream.Options{Name: "auth"}, upstream.Target{Addr: "auth.internal:9091"})
	if err != nil {
		panic(err)
	}
	service, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		panic(err)
	}
	auth, err := filters.ForwardAuth(filters.ForwardAuthOptions{
		To: service, URI: "/api/authz/forward-auth", ResponseFields: []string{"Remote-User", "Remote-Groups"}, Redirects: true,
	})
	if err != nil {
		panic(err)
	}
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello", r.Header.Get("Remote-User")) })
	http.Handle("/", filters.NewChain(auth).Then(app))
}
