package upstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// Package proxy uses a group as its upstream. Any other program that dials several
// servers can call Pick itself.
func Example() {
	group, err := upstream.New(upstream.Options{
		Name:      "api",
		Balance:   upstream.LeastConn(),
		Check:     &upstream.Check{Path: "/healthz", Interval: time.Minute},
		SlowStart: 30 * time.Second,
		Queue:     100,
	},
		upstream.Target{Addr: "192.0.2.1:8080", MaxConns: 50},
		upstream.Target{Addr: "192.0.2.2:8080", MaxConns: 50, MaxFails: 3},
		upstream.Target{Addr: "192.0.2.9:8080", Backup: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()

	r := httptest.NewRequest("GET", "/", nil)
	lease, err := group.Pick(r.Context(), r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Addr())
	lease.Done(upstream.Outcome{Status: 200})
	// Output: 192.0.2.1:8080
}

// Checks need not be requests for a path of the targets' own port: these are sent to the management port of each target, and
// look at the body.
func ExampleCheck() {
	group, err := upstream.New(upstream.Options{
		Name: "app",
		Check: &upstream.Check{
			Path: "/actuator/health", Port: 8081, Scheme: "https", TLSConfig: &tls.Config{ServerName: "app.internal"},
			HealthyBody: regexp.MustCompile(`"status":"UP"`).Match,
			OnChange: func(addr string, healthy bool, err error) {
				log.Println(addr, healthy, err)
			},
		},
	}, upstream.Target{Addr: "192.0.2.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Checks of targets that speak gRPC call gRPC's health service for the service that the gateway needs.
func ExampleCheck_grpc() {
	group, err := upstream.New(upstream.Options{
		Name:     "cart",
		Protocol: upstream.H2C,
		Check:    &upstream.Check{GRPC: true, GRPCService: "shop.v1.Cart"},
	}, upstream.Target{Addr: "192.0.2.1:50051"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// A function checks what no request can.
func ExampleCheck_func() {
	group, err := upstream.New(upstream.Options{
		Name: "replicas",
		Check: &upstream.Check{Func: func(ctx context.Context, target upstream.Target) error {
			lag, err := replicationLag(ctx, target.Addr)
			if err == nil && lag > time.Minute {
				err = fmt.Errorf("%v behind", lag)
			}
			return err
		}},
	}, upstream.Target{Addr: "192.0.2.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// replicationLag stands for what a program knows of its targets.
func replicationLag(context.Context, string) (time.Duration, error) { return 0, nil }

// The targets are the addresses of a name in the DNS.
func ExampleDNS() {
	source, err := upstream.DNS("app.example.com:8080", upstream.DNSOptions{Target: upstream.Target{MaxConns: 50}})
	if err != nil {
		log.Fatal(err)
	}
	group, err := upstream.New(upstream.Options{Name: "app", Source: source})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Requests go to the targets of the gateway's own zone as long as one of them has less than 100
// requests in flight.
func ExampleBalanceFunc() {
	zones := map[string]string{"192.0.2.1:8080": "north", "192.0.2.2:8080": "south", "192.0.2.3:8080": "south"}
	inZone := func(_ *http.Request, available []upstream.Candidate) int {
		best := 0
		load := func(c upstream.Candidate) int {
			if zones[c.Addr] != "south" {
				return c.InFlight + 100
			}
			return c.InFlight
		}
		for i, c := range available {
			if load(c) < load(available[best]) {
				best = i
			}
		}
		return best
	}
	group, err := upstream.New(upstream.Options{Balance: upstream.BalanceFunc(inZone)},
		upstream.Target{Addr: "192.0.2.1:8080"}, upstream.Target{Addr: "192.0.2.2:8080"}, upstream.Target{Addr: "192.0.2.3:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	for range 3 {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Addr())
	}
	// Output:
	// 192.0.2.2:8080
	// 192.0.2.3:8080
	// 192.0.2.2:8080
}

// A URL that fails on every target takes out at most half of them, after three failures each within ten seconds. The others
// still get the requests for all other URLs.
func ExampleOptions_maxEjected() {
	group, err := upstream.New(upstream.Options{Name: "api", MaxEjected: 0.5},
		upstream.Target{Addr: "192.0.2.1:8080", MaxFails: 3},
		upstream.Target{Addr: "192.0.2.2:8080", MaxFails: 3},
		upstream.Target{Addr: "192.0.2.3:8080", MaxFails: 3},
	)
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/broken", nil)
	for range 100 {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		lease.Done(upstream.Outcome{Err: errors.New("connection reset")})
	}
	for s := range group.Targets() {
		fmt.Println(s.Target.Addr, s.Ejected)
	}
	// Output:
	// 192.0.2.1:8080 true
	// 192.0.2.2:8080 false
	// 192.0.2.3:8080 false
}

// While less than half of the targets are available, requests are sent as if all were.
func ExampleOptions_panicThreshold() {
	group, err := upstream.New(upstream.Options{Name: "api", PanicThreshold: 0.5, Balance: upstream.First()},
		upstream.Target{Addr: "192.0.2.1:8080"}, upstream.Target{Addr: "192.0.2.2:8080"}, upstream.Target{Addr: "192.0.2.3:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	for _, outcome := range []error{errors.New("refused"), errors.New("refused"), nil} {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Addr(), outcome)
		lease.Done(upstream.Outcome{Err: outcome})
	}
	// Output:
	// 192.0.2.1:8080 refused
	// 192.0.2.2:8080 refused
	// 192.0.2.1:8080 <nil>
}

// Only connections that can't be made take a target out: a URL that is slow on every target does not.
func ExampleOptions_failKinds() {
	group, err := upstream.New(upstream.Options{Name: "api", FailKinds: []culvert.ErrorKind{culvert.DialFailed}},
		upstream.Target{Addr: "192.0.2.1:8080"}, upstream.Target{Addr: "192.0.2.2:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	for _, kind := range []culvert.ErrorKind{culvert.Timeout, culvert.DialFailed} {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		lease.Done(upstream.Outcome{Err: &culvert.Error{Kind: kind}})
	}
	for s := range group.Targets() {
		fmt.Println(s.Target.Addr, s.Healthy)
	}
	// Output:
	// 192.0.2.1:8080 true
	// 192.0.2.2:8080 false
}

// A target is taken out when it has failed half of at least 20 requests of the last minute, however many they are.
func ExampleOptions_failRate() {
	group, err := upstream.New(upstream.Options{Name: "api", FailRate: 0.5, FailMinRequests: 20, FailWindow: time.Minute},
		upstream.Target{Addr: "192.0.2.1:8080"}, upstream.Target{Addr: "192.0.2.2:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	r := httptest.NewRequest("GET", "/", nil)
	for range 100 {
		lease, err := group.Pick(r.Context(), r)
		if err != nil {
			log.Fatal(err)
		}
		outcome := upstream.Outcome{Status: 200}
		if lease.Addr() == "192.0.2.1:8080" {
			outcome = upstream.Outcome{Err: errors.New("connection reset")}
		}
		lease.Done(outcome)
	}
	for s := range group.Targets() {
		fmt.Println(s.Target.Addr, s.Ejected)
	}
	// Output:
	// 192.0.2.1:8080 true
	// 192.0.2.2:8080 false
}

// A target that remains broken gets one request after 10 seconds, then after 20, 30 and so on, up to five minutes.
func ExampleOptions_maxFailTimeout() {
	group, err := upstream.New(upstream.Options{Name: "api", MaxFailTimeout: 5 * time.Minute},
		upstream.Target{Addr: "192.0.2.1:8080", FailTimeout: 10 * time.Second}, upstream.Target{Addr: "192.0.2.2:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
}

// Before a target is restarted, it is drained, and its requests and tunnels are waited for.
func ExampleGroup_SetDrained() {
	group, err := upstream.New(upstream.Options{Name: "api"}, upstream.Target{Addr: "192.0.2.1:8080"}, upstream.Target{Addr: "192.0.2.2:8080"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	if err := group.SetDrained("192.0.2.1:8080", true); err != nil {
		log.Fatal(err)
	}
	for s := range group.Targets() {
		fmt.Println(s.Target.Addr, s.Drained, s.InFlight)
	}
	// Output:
	// 192.0.2.1:8080 true 0
	// 192.0.2.2:8080 false 0
}
