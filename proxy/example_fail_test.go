package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// tokenFor stands for a service that issues tokens.
func tokenFor(*http.Request) (string, error) { return "", errors.New("the token service is away") }

// A hook that can't do its work fails the exchange: nothing is sent to a target, and none is to blame.
func ExampleOutbound_Fail() {
	group, err := upstream.New(upstream.Options{Name: "api"}, upstream.Target{Addr: "192.0.2.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{
		Upstream: group,
		Rewrite: func(out *proxy.Outbound) {
			out.SetXForwarded()
			token, err := tokenFor(out.In)
			if err != nil {
				out.Fail(&culvert.Error{Kind: culvert.Busy, RetryAfter: 5e9, Err: err})
				return
			}
			out.Out.Header.Set("Authorization", "Bearer "+token)
		},
		OnError: func(_ *http.Request, err *culvert.Error) { fmt.Println(err) },
	})
	if err != nil {
		log.Fatal(err)
	}

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	// Output:
	// busy: the token service is away
	// 503 5
}

// A response that must not reach the client fails the exchange, without a failure of the target.
func ExampleResponse_Fail() {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tenant", "green")
	}))
	defer target.Close()
	group, err := upstream.New(upstream.Options{Name: "api"}, upstream.Target{Addr: target.Listener.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{
		Upstream: group,
		ModifyResponse: func(r *proxy.Response) {
			if tenant := r.Header.Get("X-Tenant"); tenant != r.In.Header.Get("X-Tenant") {
				r.Fail(fmt.Errorf("a response for %q", tenant))
			}
		},
		OnError: func(_ *http.Request, err *culvert.Error) { fmt.Println(err) },
	})
	if err != nil {
		log.Fatal(err)
	}

	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Tenant", "blue")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output:
	// internal error: a response for "green"
	// 500
}

// A filter replaces a request's body, with its length. Its retries send the same bytes.
func ExampleProxy_requestBody() {
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%d %s\n", r.ContentLength, body)
	}))
	defer target.Close()
	group, err := upstream.New(upstream.Options{Name: "api"}, upstream.Target{Addr: target.Listener.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	handler, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		log.Fatal(err)
	}
	replacing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
			return
		}
		body = bytes.ReplaceAll(body, []byte("colour"), []byte("color"))
		r = r.WithContext(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		handler.ServeHTTP(w, r)
	})

	replacing.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(`{"colour":"red"}`)))
	// Output: 15 {"color":"red"}
}
