package culvert_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
	"github.com/culvert-go/culvert/watchcodec/view"
	"github.com/culvert-go/culvert/wsupgrade"
)

// What a time in options is: see the package's documentation.
const (
	bound = iota // a negative value is none
	exact        // it can't be negative
	free         // every value has a meaning of its own
)

// Times in options have one meaning, and each of them is one of the three.
func TestTimesInOptions(t *testing.T) {
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	make := func(o upstream.Options, targets ...upstream.Target) error {
		g, err := upstream.New(o, append(targets, upstream.Target{Addr: "127.0.0.1:1", Down: true})...)
		if err == nil {
			g.Close()
		}
		return err
	}
	for name, test := range map[string]struct {
		options any // a pointer to them
		new     func() error
		times   map[string]int
	}{
		"proxy.Options": options(proxy.Options{Upstream: group}, func(o proxy.Options) error {
			_, err := proxy.New(o)
			return err
		}, map[string]int{"Timeout": bound, "BodyTimeout": bound, "ReadTimeout": bound, "WriteTimeout": bound, "FlushInterval": free}),
		"proxy.Retry": options(proxy.Retry{}, func(r proxy.Retry) error {
			_, err := proxy.New(proxy.Options{Upstream: group, Retry: r})
			return err
		}, map[string]int{"Timeout": bound, "Wait": exact, "Hedge": exact}),
		"upstream.Options": options(upstream.Options{}, func(o upstream.Options) error { return make(o) }, map[string]int{
			"FailLatency": bound, "QueueTimeout": bound, "DialTimeout": bound, "WriteTimeout": bound, "HeaderTimeout": bound,
			"PingInterval": bound, "IdleTimeout": bound, "MaxConnAge": bound, "FailWindow": exact, "MaxFailTimeout": exact, "SlowStart": exact, "RetryAfter": exact}),
		"upstream.Check": options(upstream.Check{}, func(c upstream.Check) error { return make(upstream.Options{Check: &c}) },
			map[string]int{"Timeout": bound, "Interval": exact}),
		"upstream.Target": options(upstream.Target{Addr: "127.0.0.1:2", Down: true}, func(t upstream.Target) error { return make(upstream.Options{}, t) },
			map[string]int{"FailTimeout": exact}),
		"upstream.DNSOptions": options(upstream.DNSOptions{}, func(o upstream.DNSOptions) error {
			_, err := upstream.DNS("example.org:80", o)
			return err
		}, map[string]int{"MinInterval": exact, "MaxInterval": exact}),
		"upstream.StickyOptions": options(upstream.StickyOptions{}, func(o upstream.StickyOptions) error {
			return make(upstream.Options{Balance: upstream.Sticky(o)})
		}, map[string]int{"MaxAge": exact}),
		"wsupgrade.Options": options(wsupgrade.Options{}, func(o wsupgrade.Options) error {
			_, err := wsupgrade.New(o)
			return err
		}, map[string]int{"HandshakeTimeout": bound, "HeaderTimeout": bound, "IdleTimeout": bound, "MaxLifetime": bound, "PingInterval": bound}),
		"wsupgrade.RegistryOptions": options(wsupgrade.RegistryOptions{}, func(o wsupgrade.RegistryOptions) error {
			_, err := wsupgrade.NewRegistry(o)
			return err
		}, map[string]int{"RetryAfter": exact}),
		"filters.ConcurrencyOptions": options(filters.ConcurrencyOptions{Max: 1}, func(o filters.ConcurrencyOptions) error {
			_, err := filters.Concurrency(o)
			return err
		}, map[string]int{"QueueTimeout": bound, "RetryAfter": exact}),
		"filters.ForwardAuthOptions": options(filters.ForwardAuthOptions{To: http.NotFoundHandler()}, func(o filters.ForwardAuthOptions) error {
			_, err := filters.ForwardAuth(o)
			return err
		}, map[string]int{"Timeout": bound, "CacheTime": exact}),
		"filters.MirrorOptions": options(filters.MirrorOptions{To: http.NotFoundHandler()}, func(o filters.MirrorOptions) error {
			_, err := filters.NewMirror(o)
			return err
		}, map[string]int{"Timeout": bound}),
		"filters.RateLimitOptions": options(filters.RateLimitOptions{Requests: 1}, func(o filters.RateLimitOptions) error {
			_, err := filters.RateLimit(o)
			return err
		}, map[string]int{"Per": exact, "StoreTimeout": bound}),
		"watchcodec.FanoutOptions": options(watchcodec.FanoutOptions{}, func(o watchcodec.FanoutOptions) error {
			_, err := watchcodec.NewFanout(o)
			return err
		}, map[string]int{"WriteTimeout": bound}),
		"watchcodec.FollowOptions": options(watchcodec.FollowOptions{}, func(o watchcodec.FollowOptions) error {
			return follow(t, o)
		}, map[string]int{"BookmarkEvery": bound}),
		"source.Options": options(source.Options{Handler: http.NotFoundHandler(), Request: httptest.NewRequest("GET", "/api/v1/pods", nil), Sink: sink{}},
			func(o source.Options) error {
				_, err := source.New(o)
				return err
			}, map[string]int{"InitialTimeout": bound, "MaxWait": bound, "MaxWatch": bound}),
		"view.Options": options(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return nil }}, func(o view.Options) error {
			_, err := view.New(o)
			return err
		}, map[string]int{"Reauthorize": bound, "WriteTimeout": bound, "SyncTimeout": bound, "InitialTimeout": bound, "BookmarkEvery": bound, "Idle": bound}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.new(); err != nil {
				t.Errorf("0 everywhere: %v", err)
			}
			v := reflect.ValueOf(test.options).Elem()
			for i := range v.NumField() {
				field := v.Type().Field(i).Name
				if _, isTime := v.Field(i).Interface().(time.Duration); !isTime {
					continue
				}
				meaning, listed := test.times[field]
				if !listed {
					t.Errorf("%s is not in the table", field)
					continue
				}
				v.Field(i).SetInt(int64(-time.Second))
				if err := test.new(); (err != nil) != (meaning == exact) {
					t.Errorf("%s of -1s: %v", field, err)
				}
				v.Field(i).SetInt(0)
			}
		})
	}
}

// sink is a source.Sink of which no method is called.
type sink struct{ source.Sink }

// follow follows a Fanout that sends a frame, for a moment.
func follow(t *testing.T, o watchcodec.FollowOptions) error {
	t.Helper()
	f, err := watchcodec.NewFanout(watchcodec.FanoutOptions{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Bookmark = func(uint64) []byte { return nil }
	f.Follow(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx), o)
	return nil
}

// options is a row of the table.
func options[T any](o T, new func(T) error, times map[string]int) struct {
	options any
	new     func() error
	times   map[string]int
} {
	p := &o
	return struct {
		options any
		new     func() error
		times   map[string]int
	}{p, func() error { return new(*p) }, times}
}
