package filters_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// byKey is a RateLimitOptions.Key that returns a header field.
func byKey(r *http.Request) string { return r.Header.Get("Key") }

// limited serves a request and returns the status and Retry-After.
func limited(h http.Handler, r *http.Request) (status int, retryAfter string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Retry-After")
}

func from(addr string) *http.Request {
	r := get()
	r.RemoteAddr = addr
	return r
}

// A bucket has its burst, gains tokens at its rate up to the burst, and loses none by refused requests. Retry-After is
// the time after which a request is served, and no later.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 2, Per: 5 * time.Second, Burst: 3, Key: byKey}))(respond("ok"))
		for i, step := range []struct {
			after      time.Duration
			key        string
			status     int
			retryAfter string
		}{
			{0, "a", 200, ""},
			{0, "a", 200, ""},
			{0, "a", 200, ""},
			{0, "a", 429, "3"},                      // 2.5 seconds
			{500 * time.Millisecond, "a", 429, "2"}, // exactly 2 seconds
			{2*time.Second - 1, "a", 429, "1"},      // a nanosecond
			{1, "a", 200, ""},                       // the refused ones took nothing
			{0, "a", 429, "3"},
			{0, "b", 200, ""},
			{0, "", 200, ""},
			{0, "", 200, ""},
			{0, "", 200, ""},
			{0, "", 200, ""},
			{time.Hour, "a", 200, ""},
			{0, "a", 200, ""},
			{0, "a", 200, ""},
			{0, "a", 429, "3"}, // not more than the burst
		} {
			time.Sleep(step.after)
			if status, retryAfter := limited(h, get("Key", step.key)); status != step.status || retryAfter != step.retryAfter {
				t.Errorf("step %d: status %d, Retry-After %q", i, status, retryAfter)
			}
		}
	})
}

// The default key is the client's address; an IPv6 address is that of its network.
func TestRateLimitByAddress(t *testing.T) {
	behind := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}))
	forwarded := func(addr string) *http.Request {
		r := from("10.0.0.1:1")
		r.Header.Set("X-Forwarded-For", addr)
		return r
	}
	for name, test := range map[string]struct {
		bits          int
		first, second *http.Request
		same          bool
	}{
		"one address":            {0, from("192.0.2.1:1"), from("192.0.2.1:2"), true},
		"two addresses":          {0, from("192.0.2.1:1"), from("192.0.2.2:1"), false},
		"mapped":                 {0, from("192.0.2.1:1"), from("[::ffff:192.0.2.1]:2"), true},
		"two mapped":             {0, from("[::ffff:192.0.2.1]:2"), from("[::ffff:192.0.2.2]:2"), false},
		"one network":            {0, from("[2001:db8::1]:1"), from("[2001:db8::ffff:1:1]:1"), true},
		"two networks":           {0, from("[2001:db8::1]:1"), from("[2001:db8:0:1::1]:1"), false},
		"two networks of one":    {56, from("[2001:db8::1]:1"), from("[2001:db8:0:1::1]:1"), true},
		"two addresses of one":   {128, from("[2001:db8::1]:1"), from("[2001:db8::2]:1"), false},
		"long addresses":         {128, from("[2001:db8:1111:2222:3333:4444:5555:6666]:1"), from("[2001:db8:1111:2222:3333:4444:5555:6667]:1"), false},
		"zones":                  {128, from("[fe80::1%eth0]:1"), from("[fe80::1%eth1]:1"), true},
		"not known":              {0, from("@"), from(""), true},
		"behind a trusted proxy": {0, forwarded("192.0.2.1"), forwarded("192.0.2.2"), false},
	} {
		h := behind(good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Per: time.Hour, IPv6Bits: test.bits}))(respond("ok")))
		if status, _ := limited(h, test.first); status != 200 {
			t.Errorf("%s: status %d", name, status)
		}
		if status, _ := limited(h, test.second); (status == 429) != test.same {
			t.Errorf("%s: status %d of the second", name, status)
		}
	}
}

// exact is what RateLimit is compared with: the times at which the buckets of any number of keys are full again.
type exact struct {
	interval time.Duration
	burst    int
	fullAt   map[string]time.Time
	most     int  // MaxKeys
	crowded  bool // there were more buckets that are not full
}

// compare compares what RateLimit has done with a request: it may serve no more than its limit, and must serve all of it
// as long as there is memory for the buckets.
func (e *exact) compare(t *testing.T, key string, served bool) {
	t.Helper()
	now := time.Now()
	full := e.fullAt[key]
	if full.Before(now) {
		full = now
	}
	full = full.Add(e.interval)
	for known, at := range e.fullAt {
		if !at.After(now) {
			delete(e.fullAt, known)
		}
	}
	allowed := full.Sub(now) <= e.interval*time.Duration(e.burst)
	if served && !allowed || !served && allowed && !e.crowded && len(e.fullAt) < e.most {
		t.Fatalf("%q: served %v; %d other keys of at most %d, more before: %v", key, served, len(e.fullAt), e.most, e.crowded)
	}
	if served {
		e.fullAt[key] = full
	}
	e.crowded = e.crowded || len(e.fullAt) > e.most
}

// Beyond MaxKeys no client may do more than its limit. Up to MaxKeys each may do all of it, and those whose buckets
// are full do not count.
func TestRateLimitMaxKeys(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			keys := []string{"a", "b", "c", "d", strings.Repeat("long", 100), strings.Repeat("long", 99) + "x", strings.Repeat("y", 31), strings.Repeat("y", 32)}
			e := exact{interval: time.Duration(1+random.IntN(1000)) * time.Millisecond, burst: 1 + random.IntN(4),
				fullAt: map[string]time.Time{}, most: 1 + random.IntN(len(keys)+2)}
			h := good(t)(filters.RateLimit(filters.RateLimitOptions{
				Requests: 1, Per: e.interval, Burst: e.burst, MaxKeys: e.most, Key: byKey}))(respond("ok"))
			for range 300 {
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
				}
				key := keys[random.IntN(len(keys))]
				status, _ := limited(h, get("Key", key))
				e.compare(t, key, status == 200)
			}
		})
	}
}

// A new client takes over the bucket with the most tokens, with these tokens, if there is no other one.
func TestRateLimitBeyondMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Burst: 3, MaxKeys: 2, Key: byKey}))(respond("ok"))
		for i, step := range []struct {
			after  time.Duration
			key    string
			status int
		}{
			{0, "a", 200}, {0, "a", 200}, {0, "a", 200}, // has none
			{0, "b", 200},                // has two
			{0, "c", 200}, {0, "c", 200}, // takes over b's two
			{0, "c", 429},
			{0, "a", 429}, // has not come off better
			{0, "b", 429},
			{time.Second, "d", 200}, // takes over one
			{0, "d", 429},
			{3 * time.Second, "e", 200}, // all are full
			{0, "e", 200}, {0, "e", 200}, {0, "e", 429},
		} {
			time.Sleep(step.after)
			if status, _ := limited(h, get("Key", step.key)); status != step.status {
				t.Errorf("step %d: status %d for %s", i, status, step.key)
			}
		}
	})
}

// Concurrent requests take each token once.
func TestRateLimitAtOnce(t *testing.T) {
	h := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 10, Per: 100 * time.Hour}))(respond("ok"))
	var served atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if status, _ := limited(h, from("192.0.2.1:1")); status == 200 {
				served.Add(1)
			}
		})
	}
	all.Wait()
	if served.Load() != 10 {
		t.Errorf("%d were served", served.Load())
	}
}

// The fields of draft-ietf-httpapi-ratelimit-headers-11: r in t is never more than the rate, and Retry-After is not
// before the end of t.
func TestRateLimitFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 2, Per: 3 * time.Second, Burst: 5, Policy: "a b", Key: byKey}))
		for i, step := range []struct {
			after      time.Duration
			status     int
			field      string
			retryAfter string
		}{
			{0, 200, `"a b";r=4;t=6`, ""},
			{0, 200, `"a b";r=3;t=5`, ""}, // 4.5
			{0, 200, `"a b";r=2;t=3`, ""},
			{0, 200, `"a b";r=1;t=2`, ""}, // 1.5
			{0, 200, `"a b";r=0;t=2`, ""},
			{0, 429, `"a b";r=0;t=2`, "2"},
			{600 * time.Millisecond, 429, `"a b";r=0;t=1`, "1"},
			{900 * time.Millisecond, 200, `"a b";r=0;t=2`, ""},
			{time.Minute, 200, `"a b";r=4;t=6`, ""},
		} {
			time.Sleep(step.after)
			resp, _ := through(f, respond("ok", "RateLimit", `"target";r=1`), get("Key", "a"))
			fields := resp.Header.Values("RateLimit")
			if resp.StatusCode == 200 && fields[0] != `"target";r=1` {
				t.Errorf("step %d: the target's field is gone: %q", i, fields)
			}
			if got := fields[len(fields)-1]; resp.StatusCode != step.status || got != step.field {
				t.Errorf("step %d: status %d, RateLimit %q", i, resp.StatusCode, got)
			}
			if got := resp.Header.Get("RateLimit-Policy"); got != `"a b";q=5;w=8` { // 7.5
				t.Errorf("step %d: RateLimit-Policy %q", i, got)
			}
			if got := resp.Header.Get("Retry-After"); got != step.retryAfter {
				t.Errorf("step %d: Retry-After %q", i, got)
			}
		}
		if resp, _ := through(f, respond("ok"), get()); resp.Header.Get("RateLimit") != "" || resp.Header.Get("RateLimit-Policy") != "" {
			t.Errorf("without a key: %v", resp.Header)
		}
	})
}

// Of two filters each sends its fields.
func TestRateLimitTwoPolicies(t *testing.T) {
	second := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 10, Policy: "second"}))
	hour := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 100, Per: time.Hour, Policy: "hour"}))
	resp, _ := through(filters.NewChain(hour, second).Then, respond("ok"), get())
	if got := strings.Join(resp.Header["Ratelimit-Policy"], ", "); got != `"second";q=10;w=1, "hour";q=100;w=3600` {
		t.Errorf("RateLimit-Policy %s", got)
	}
	if got := strings.Join(resp.Header["Ratelimit"], ", "); got != `"second";r=9;t=1, "hour";r=99;t=3564` {
		t.Errorf("RateLimit %s", got)
	}
}

// A dry run changes no response, and OnLimited gets the requests that would be refused.
func TestRateLimitDryRun(t *testing.T) {
	for _, dry := range []bool{false, true} {
		var calls []filters.RateLimitState
		f := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Per: time.Hour, Policy: "a", DryRun: dry,
			OnLimited: func(r *http.Request, s filters.RateLimitState) {
				if r.Header.Get("Key") != "second" {
					t.Errorf("called with %v", r.Header)
				}
				calls = append(calls, s)
			}}))
		first, _ := through(f, respond("ok"), get("Key", "first"))
		second, _ := through(f, respond("ok"), get("Key", "second"))
		want := http.StatusTooManyRequests
		if dry {
			want = 200
		}
		if first.StatusCode != 200 || second.StatusCode != want {
			t.Errorf("dry run %v: status %d, then %d", dry, first.StatusCode, second.StatusCode)
		}
		if sent := first.Header.Get("RateLimit") + second.Header.Get("Retry-After"); (sent == "") != dry {
			t.Errorf("dry run %v: fields %s", dry, sent)
		}
		if len(calls) != 1 || calls[0].OK || calls[0].Tokens != 0 || calls[0].Next <= 59*time.Minute || calls[0].Next > time.Hour {
			t.Errorf("dry run %v: OnLimited was called with %+v", dry, calls)
		}
	}
}

// store is a RateLimitStore.
type store func(ctx context.Context, key string, b filters.RateLimitBucket) (filters.RateLimitState, error)

func (s store) Take(ctx context.Context, key string, b filters.RateLimitBucket) (filters.RateLimitState, error) {
	return s(ctx, key, b)
}

// A store gets the key and the bucket, and its state is what counts, as far as it can be true.
func TestRateLimitStore(t *testing.T) {
	for _, test := range []struct {
		state  filters.RateLimitState
		status int
		want   string
	}{
		{filters.RateLimitState{OK: true, Tokens: 3, Next: time.Second}, 200, ` "p";r=3;t=6`},
		{filters.RateLimitState{OK: true, Tokens: 100, Next: -time.Second}, 200, ` "p";r=5;t=10`},
		{filters.RateLimitState{OK: true, Tokens: -7, Next: time.Hour}, 200, ` "p";r=0;t=10`},
		{filters.RateLimitState{Next: 1500 * time.Millisecond}, 429, `2 "p";r=0;t=2`},
		{filters.RateLimitState{}, 429, `1 "p";r=0;t=0`},
	} {
		f := good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Per: 2 * time.Second, Burst: 5, Policy: "p",
			Store: store(func(ctx context.Context, key string, b filters.RateLimitBucket) (filters.RateLimitState, error) {
				if _, ok := ctx.Deadline(); !ok || key != "2001:db8::/64" || b.Burst != 5 || b.Interval != 2*time.Second {
					t.Errorf("key %q, bucket %+v, deadline %v", key, b, ok)
				}
				return test.state, nil
			})}))
		resp, _ := through(f, respond("ok"), from("[2001:db8::1]:1"))
		if got := resp.Header.Get("Retry-After") + " " + resp.Header.Get("RateLimit"); resp.StatusCode != test.status || got != test.want {
			t.Errorf("%+v: status %d, %s", test.state, resp.StatusCode, got)
		}
	}
}

// If the store fails, requests are refused unless FailOpen is set. The log has the error, once a second at most.
func TestRateLimitStoreFails(t *testing.T) {
	for name, test := range map[string]struct {
		options filters.RateLimitOptions
		status  int
	}{
		"closed":  {filters.RateLimitOptions{}, 503},
		"open":    {filters.RateLimitOptions{FailOpen: true}, 200},
		"dry run": {filters.RateLimitOptions{DryRun: true}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				o := test.options
				o.Requests, o.Policy, o.Log = 1, "p", slog.New(slog.NewTextHandler(&log, nil))
				o.OnLimited = func(*http.Request, filters.RateLimitState) { t.Error("OnLimited was called") }
				o.Store = store(func(ctx context.Context, _ string, _ filters.RateLimitBucket) (filters.RateLimitState, error) {
					<-ctx.Done()
					return filters.RateLimitState{}, errors.New("out of reach")
				})
				h := good(t)(filters.RateLimit(o))(respond("ok"))
				ctx, result := filters.WithResult(t.Context())
				start := time.Now()
				for range 4 {
					status, after := limited(h, get().WithContext(ctx))
					if status != test.status || (after == "1") != (status == 503) {
						t.Errorf("status %d, Retry-After %q", status, after)
					}
				}
				if took := time.Since(start); took != 4*time.Second {
					t.Errorf("the store had %v for four requests, want 4s", took)
				}
				if refused := result.Err != nil; refused != (test.status == 503) {
					t.Errorf("the result's error: %v", result.Err)
				}
				gone, cancel := context.WithCancel(ctx)
				cancel()
				limited(h, get().WithContext(gone)) // no failure of the store
				for range 10 {
					go limited(h, get().WithContext(t.Context())) // at the same time
				}
				time.Sleep(time.Minute)
				limited(h, get().WithContext(ctx))
				if n := strings.Count(log.String(), `error="filters: RateLimit: the store: out of reach"`); n != 6 {
					t.Errorf("%d records, want 6:\n%s", n, &log)
				}
				if strings.Contains(log.String(), "not_logged=1\n") {
					t.Errorf("that a client has disconnected counts as a failure:\n%s", &log)
				}
				if !strings.HasSuffix(log.String(), "not_logged=9\n") {
					t.Errorf("the last record does not count the nine before:\n%s", &log)
				}
			})
		})
	}
}

func TestRateLimitOptionsOutOfRange(t *testing.T) {
	for want, o := range map[string]filters.RateLimitOptions{
		"filters: RateLimit: RateLimitOptions.Requests is not positive":              {Per: time.Second},
		"filters: RateLimit: an option is out of range":                              {Requests: 1, Burst: -1},
		"filters: RateLimit: RateLimitOptions.IPv6Bits is not in the range 0 to 128": {Requests: 1, IPv6Bits: 129},
		`filters: RateLimit: invalid character '"' in the name of the policy`:        {Requests: 1, Policy: `a"`},
		`filters: RateLimit: invalid character 'Ã' in the name of the policy`:        {Requests: 1, Policy: "é"},
		"filters: RateLimit: a bucket would not become full in 292 years":            {Requests: 1, Per: math.MaxInt64, Burst: 2},
	} {
		bad(t, want)(filters.RateLimit(o))
	}
	bad(t, "filters: RateLimit: an option is out of range")(filters.RateLimit(filters.RateLimitOptions{Requests: 1, MaxKeys: -1}))
	bad(t, "filters: RateLimit: an option is out of range")(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Per: -1}))
	for _, o := range []filters.RateLimitOptions{{Requests: 1, Per: math.MaxInt64}, {Requests: math.MaxInt32, Per: 1}} { // the largest
		h := good(t)(filters.RateLimit(o))(respond("ok"))
		if status, _ := limited(h, get()); status != 200 {
			t.Errorf("%+v: status %d", o, status)
		}
		status, retryAfter := limited(h, get())
		if o.Requests == 1 && (status != 429 || retryAfter != "9223372037" && retryAfter != "9223372036") || o.Requests > 1 && status != 200 {
			t.Errorf("%+v: status %d, Retry-After %s of the second", o, status, retryAfter)
		}
	}
}

// Any sequence of requests of many keys is served as by the exact model.
func FuzzRateLimit(f *testing.F) {
	f.Add([]byte("aaaabbbb\x80\x81aaaacccc"), uint8(2), uint8(3), uint8(7))
	f.Add([]byte("abcdefgh\xffabcdefgh"), uint8(1), uint8(200), uint8(1))
	f.Fuzz(func(t *testing.T, steps []byte, burst, requests, most uint8) {
		if burst == 0 || requests == 0 || most == 0 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			e := exact{interval: (time.Second-1)/time.Duration(requests) + 1, burst: int(burst), fullAt: map[string]time.Time{}, most: int(most)}
			h := good(t)(filters.RateLimit(filters.RateLimitOptions{
				Requests: int(requests), Burst: e.burst, MaxKeys: e.most, Key: byKey}))(respond("ok"))
			for _, step := range steps {
				if step >= 0x80 {
					time.Sleep(e.interval * time.Duration(step&0x7f) / 16)
					continue
				}
				key := "k" + string(rune(step))
				status, _ := limited(h, get("Key", key))
				e.compare(t, key, status == 200)
			}
		})
	})
}

// quiet is a handler that does nothing.
var quiet = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// BenchmarkRateLimit measures a request of a known key, and one that is refused.
func BenchmarkRateLimit(b *testing.B) {
	for name, requests := range map[string]int{"served": 1e9, "refused": 1} {
		b.Run(name, func(b *testing.B) {
			h := good(b)(filters.RateLimit(filters.RateLimitOptions{Requests: requests, Per: time.Hour}))(quiet)
			r, w := hotRequest(), &bareWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
	b.Run("new keys", func(b *testing.B) {
		var key string
		h := good(b)(filters.RateLimit(filters.RateLimitOptions{Requests: 10, Key: func(*http.Request) string { return key }}))(quiet)
		r, w := hotRequest(), &bareWriter{http.Header{}}
		for n := 0; b.Loop(); n++ {
			key = "key " + time.Duration(n).String()
			h.ServeHTTP(w, r)
		}
	})
}
