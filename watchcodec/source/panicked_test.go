package source_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// panicky is a Sink that panics in one of its methods.
type panicky struct {
	*recordingSink
	in string
}

func (p panicky) call(method string) {
	if method == p.in {
		panic("a bug of " + method)
	}
}

func (p panicky) Replacing()                      { p.call("Replacing") }
func (p panicky) Set(*watchcodec.Object) error    { p.call("Set"); return nil }
func (p panicky) Delete(*watchcodec.Object) error { p.call("Delete"); return nil }
func (p panicky) Replaced(source.Collection)      { p.call("Replaced") }
func (p panicky) Lost(error)                      { p.call("Lost") }
func (p panicky) Found()                          { p.call("Found") }

// A panic of a Sink is passed on to the caller of Run. Most of them happen within the handler: as a
// panic of the handler it would end the watch, and Run would retry for ever.
func TestPanicOfASink(t *testing.T) {
	steps := func() map[string][]http.HandlerFunc {
		return map[string][]http.HandlerFunc{
			"watchlist": {text(http.StatusBadRequest, "application/json", "no")},
			"list":      {text(http.StatusInternalServerError, "text/plain", "no"), text(http.StatusOK, "application/json", list("5", "", "a", "b"))},
			"watch":     {events(event("DELETED", "a", "6"))},
		}
	}
	recovers := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { _ = recover() }()
			h.ServeHTTP(w, r)
		})
	}
	for _, method := range []string{"Replacing", "Found", "Set", "Replaced", "Delete", "Lost"} {
		for name, around := range map[string]func(http.Handler) http.Handler{"": func(h http.Handler) http.Handler { return h }, " below a recover": recovers} {
			t.Run(method+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					src, err := source.New(source.Options{Handler: around(&script{steps: steps()}), Request: httptest.NewRequest("GET", "/api/v1/things", nil), Sink: panicky{newRecord(), method}})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					defer func() {
						if got, want := recover(), "a bug of "+method; got != want {
							t.Errorf("panic %v, want %v", got, want)
						}
					}()
					t.Errorf("Run returned %v", src.Run(ctx))
				})
			})
		}
	}
}

// A panic of take is passed on to the caller of List.
func TestPanicOfTake(t *testing.T) {
	defer func() {
		if got := recover(); got != "a bug" {
			t.Errorf("panic %v", got)
		}
	}()
	h := &script{steps: map[string][]http.HandlerFunc{"list": {text(http.StatusOK, "application/json", list("5", "", "a"))}}}
	_, _, err := source.List(t.Context(), h, httptest.NewRequest("GET", "/api/v1/things", nil), func(*watchcodec.Object) error { panic("a bug") })
	t.Errorf("List returned %v", err)
}
