package culvert_test

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The fields of an httputil.ReverseProxy have counterparts in proxy.Options. The target is not one
// of them: an upstream group selects it.
func Example_fromReverseProxy() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "backend/1.0")
		fmt.Fprintf(w, "%s for %s", r.RequestURI, r.Header.Get("X-Tenant"))
	}))
	defer backend.Close()
	addr := backend.Listener.Addr().String()

	app, err := upstream.New(upstream.Options{Name: "app"}, upstream.Target{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	handler, err := proxy.New(proxy.Options{
		Upstream: app,
		Rewrite: func(o *proxy.Outbound) { // o.In and o.Out, as in httputil.ProxyRequest
			o.SetXForwarded()
			o.StripPrefix("/app")
			o.Out.Header.Set("X-Tenant", "blue")
		},
		ModifyResponse: func(r *proxy.Response) { r.Header.Del("Server") },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err *culvert.Error) {
			http.Error(w, "try again later", err.Status()) // by err.Kind
		},
		OnError: func(r *http.Request, err *culvert.Error) { // each failure, before ErrorHandler
			slog.Warn("proxy", "path", r.URL.Path, "target", err.Target, "err", err)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	gateway := httptest.NewServer(filters.NewChain().Then(handler))
	defer gateway.Close()

	resp, err := http.Get(gateway.URL + "/app/a%2Fb?sig=%zz&a=1")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s, Server %q\n", body, resp.Header.Get("Server"))
	// Output: /a%2Fb?sig=%zz&a=1 for blue, Server ""
}
