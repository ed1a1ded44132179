package filtertest_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// identity is the filter that does nothing.
func identity(next http.Handler) http.Handler { return next }

// TestGoodFilters runs the kit against every filter of this package and against
// a harmless one of a foreign kind.
func TestGoodFilters(t *testing.T) {
	hooks := filters.ResponseHooks{
		Head: func(_ *http.Request, _ int, h http.Header) { h.Set("X-Hooked", "1") },
		End:  func(*http.Request, filters.ResponseStats) {},
	}
	withBody := hooks
	withBody.Body = func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser { return passing{w} }
	for name, f := range map[string]filters.Filter{
		"identity":    identity,
		"Chain":       filters.NewChain().Then,
		"AccessLog":   filters.AccessLog(slog.New(slog.DiscardHandler)),
		"CombinedLog": filters.CombinedLog(io.Discard),
		"OnResponse":  filters.OnResponse(hooks),
		"nested":      filters.NewChain(filters.OnResponse(hooks), filters.CombinedLog(io.Discard), filters.OnResponse(hooks)).Then,
		"setter":      setter,
	} {
		t.Run(name, func(t *testing.T) {
			filtertest.Test(t, f)
		})
	}
	t.Run("OnResponse with a body", func(t *testing.T) {
		filtertest.Test(t, filters.OnResponse(withBody), filtertest.TransformsBody())
	})
}

// passing is a body transform that changes nothing.
type passing struct{ io.Writer }

func (passing) Close() error { return nil }

// setter is middleware as everybody writes it, and harmless.
func setter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
