package filtertest_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// identity is the filter that does nothing.
func identity(next http.Handler) http.Handler { return next }

// good returns a function that fails the test if a filter's constructor returns an error.
func good(t *testing.T) func(culvert.Filter, error) culvert.Filter {
	return func(f culvert.Filter, err error) culvert.Filter {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

func mirror(t *testing.T) culvert.Filter {
	m, err := filters.NewMirror(filters.MirrorOptions{To: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m.Filter
}

type unobserved struct{}

func (unobserved) RequestStarted(*http.Request) {}

func (unobserved) RequestEnded(*http.Request, filters.Observation) {}

// TestGoodFilters runs the checks on every filter of package filters and on harmless middleware that
// is not made with it.
func TestGoodFilters(t *testing.T) {
	hooks := filters.ResponseHooks{
		Header: func(_ *http.Request, _ int, h http.Header) { h.Set("X-Hooked", "1") },
		End:    func(*http.Request, culvert.ResponseStats) {},
	}
	withBody := hooks
	withBody.Body = func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser { return passing{w} }
	for name, f := range map[string]culvert.Filter{
		"identity":    identity,
		"Chain":       filters.NewChain().Then,
		"AccessLog":   filters.AccessLog(slog.New(slog.DiscardHandler)),
		"CombinedLog": filters.CombinedLog(io.Discard),
		"OnResponse":  filters.OnResponse(hooks),
		"nested":      filters.NewChain(filters.OnResponse(hooks), filters.CombinedLog(io.Discard), filters.OnResponse(hooks)).Then,
		"setter":      setter,

		"AddressList":           good(t)(filters.AddressList(filters.AddressListOptions{Rules: []filters.AddressRule{{Allow: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}})),
		"BasicAuth":             filters.NewChain(authorized, good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: map[string]string{"a": "b"}}))).Then,
		"BodyLimit":             good(t)(filters.BodyLimit(64 << 20)),
		"Concurrency":           good(t)(filters.Concurrency(filters.ConcurrencyOptions{Max: 100})),
		"DropUnderscoreNames":   filters.DropUnderscoreNames(),
		"ErrorPages":            filters.ErrorPages(func(int) http.Handler { return nil }),
		"Headers":               good(t)(filters.Headers(filters.HeaderRule{Set: http.Header{"X-Set": {"1"}}})),
		"Mirror":                mirror(t),
		"Observe":               filters.Observe(unobserved{}),
		"RateLimit":             good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1e6})),
		"RateLimit with fields": good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1e6, Policy: "a"})),
		"RealIP":                good(t)(filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})),
		"Recover":               filters.Recover(slog.New(slog.DiscardHandler)),
		"RefuseAmbiguous":       filters.RefuseAmbiguous(filters.ControlBytes),
		"RequestID":             good(t)(filters.RequestID(filters.RequestIDOptions{})),
		"Timeout":               good(t)(filters.Timeout(time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			filtertest.Test(t, f)
		})
	}
	for name, f := range map[string]culvert.Filter{
		"Compress":   good(t)(filters.Compress(filters.CompressOptions{})),
		"Decompress": good(t)(filters.Decompress(filters.DecompressOptions{Requests: true, Responses: true})),
	} {
		t.Run(name, func(t *testing.T) { filtertest.Test(t, f, filtertest.TransformsBody()) })
	}
	t.Run("OnResponse with a body", func(t *testing.T) {
		filtertest.Test(t, filters.OnResponse(withBody), filtertest.TransformsBody())
	})
}

// authorized gives requests a user and a password.
func authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.SetBasicAuth("a", "b")
		next.ServeHTTP(w, r)
	})
}

// passing is a body transform that changes nothing.
type passing struct{ io.Writer }

func (passing) Close() error { return nil }

// setter is middleware of the most common kind, and harmless.
func setter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
