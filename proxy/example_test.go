package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

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

// A request waits while its only target is restarted, for 30 seconds at most.
func ExampleRetry_wait() {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here again") }))
	defer app.Close()
	addr := app.Listener.Addr().String()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: addr, Down: true})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{Upstream: group, Retry: proxy.Retry{Wait: 30 * time.Second}})
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = group.Set(upstream.Target{Addr: addr}) })
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 here again
}

// A log line for each attempt, and a header field that only one attempt has, as tracing needs it.
func ExampleOptions_onAttempt() {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("received", r.Header.Get("Traceparent"))
	}))
	defer app.Close()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: app.Listener.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{
		Upstream: group,
		OnAttempt: func(out *http.Request, target string) func(culvert.Attempt) {
			// With OpenTelemetry: ctx, span := tracer.Start(out.Context(), "attempt"), then
			// propagator.Inject(ctx, propagation.HeaderCarrier(out.Header)).
			out.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
			return func(a culvert.Attempt) {
				fmt.Println("attempt:", a.Target == target, a.Status, a.Err) // span.End()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	// Output:
	// received 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
	// attempt: true 200 <nil>
}

// An application that knows nothing of the prefix is mounted under it: its redirects lead there, too. A request that has passed
// through this gateway before is a loop.
func ExampleResponse_ReplaceLocation() {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/login", http.StatusFound)
	}))
	defer app.Close()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: app.Listener.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	mounted, err := proxy.New(proxy.Options{
		Upstream: group,
		Rewrite: func(o *proxy.Outbound) {
			o.StripPrefix("/app")
			o.SetXForwarded()
			o.AddVia("gateway")
			o.Out.Host = "app.internal"
		},
		ModifyResponse: func(r *proxy.Response) { r.ReplaceLocation("http://app.internal/", "/app/") },
	})
	if err != nil {
		log.Fatal(err)
	}
	gateway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if proxy.HasVia(r.Header, "gateway") {
			http.Error(w, "a loop", http.StatusLoopDetected)
			return
		}
		mounted.ServeHTTP(w, r)
	})

	for _, via := range []string{"", "1.1 gateway"} {
		r := httptest.NewRequest("GET", "/app/", nil)
		if via != "" {
			r.Header.Set("Via", via)
		}
		w := httptest.NewRecorder()
		gateway.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Location"))
	}
	// Output:
	// 302 /app/login
	// 508
}

// Retries are a fifth of the requests at most, and ten a second where there are few: they do not make an overload worse.
func ExampleRetryBudget() {
	budget, err := proxy.NewRetryBudget(0.2, 10)
	if err != nil {
		log.Fatal(err)
	}
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{Upstream: group, Retry: proxy.Retry{Errors: true, Statuses: []int{502, 503}, Budget: budget}})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/", handler)
}
