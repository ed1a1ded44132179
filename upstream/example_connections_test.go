package upstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// Targets may be URLs, of which each has its scheme, certificate and base path.
func ExampleParseTarget() {
	var targets []upstream.Target
	for _, url := range []string{"https://api.example.net/v2", "http://192.0.2.1:8080"} {
		target, err := upstream.ParseTarget(url)
		if err != nil {
			log.Fatal(err)
		}
		target.Labels = map[string]string{"version": "2"}
		targets = append(targets, target)
	}
	group, err := upstream.New(upstream.Options{Name: "api"}, targets...)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	for s := range group.Targets() {
		fmt.Println(s.Target.Scheme, s.Target.Addr, s.Target.Path)
	}
	// Output:
	// https api.example.net:443 /v2
	// http 192.0.2.1:8080
}

// Each target of a group may have a certificate and a client certificate of its own.
func ExampleTarget() {
	var config *tls.Config // with the client certificate for the first target
	group, err := upstream.New(upstream.Options{Name: "partners", Scheme: "https"},
		upstream.Target{Addr: "192.0.2.1:443", ServerName: "one.example.net", TLSConfig: config, Zone: "eu-1"},
		upstream.Target{Addr: "192.0.2.2:8443", ServerName: "two.example.net", Path: "/v2", Zone: "eu-2"},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Targets that expect a header of the PROXY protocol learn the client's address without a field that clients could forge.
func ExampleProxyProtocol() {
	group, err := upstream.New(upstream.Options{
		Name:          "shop",
		ProxyProtocol: upstream.ProxyProtocolV2,
	}, upstream.Target{Addr: "192.0.2.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Targets are reached through a company's proxy, and the connections to them are kept as without it.
func ExampleDialThrough() {
	dial, err := upstream.DialThrough("https://gateway:secret@proxy.example.com:3129", upstream.EgressOptions{})
	if err != nil {
		log.Fatal(err)
	}
	group, err := upstream.New(upstream.Options{
		Name:        "partners",
		Scheme:      "https",
		DialContext: dial,
	}, upstream.Target{Addr: "api.example.net:443"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Connections are made by a function of the program's own: through a tunnel, or, as here, in memory to a server of the same
// process.
func ExampleOptions_dialContext() {
	inMemory := make(chan net.Conn)
	group, err := upstream.New(upstream.Options{
		Name: "admin",
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			near, far := net.Pipe()
			select {
			case inMemory <- far:
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}, upstream.Target{Addr: "admin.internal:80"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	go func() {
		conn := <-inMemory
		defer conn.Close()
		_, _ = io.WriteString(conn, "hello\n")
	}()
	conn, err := group.Dial(context.Background(), "tcp", "admin.internal:80")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	text, _ := io.ReadAll(conn)
	fmt.Print(string(text))
	// Output: hello
}

// services is a Source: it delivers each list that is sent to it, also one without targets.
type services chan []upstream.Target

func (s services) Watch(ctx context.Context, set func(...upstream.Target) error) {
	for {
		select {
		case list := <-s:
			if err := set(list...); err != nil {
				log.Print(err) // the targets before remain
			}
		case <-ctx.Done():
			return
		}
	}
}

// A service without instances has a group without targets: requests are refused (503) until there is one.
func ExampleSource() {
	instances := make(services, 1)
	instances <- nil
	group, err := upstream.New(upstream.Options{Name: "reports", Source: instances})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	_, err = group.Pick(context.Background(), httptest.NewRequest("GET", "/", nil))
	var refused *culvert.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status(), refused.RetryAfter)
	}
	// Output: 503 1s
}
