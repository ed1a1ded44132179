package view_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// panicky is a Renderer that panics, at an object or a group of "bug".
type panicky struct {
	*paint
	in string

	mu    sync.Mutex
	fixed bool
}

func (p *panicky) call(in string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in == p.in && !p.fixed {
		panic("a bug of " + in)
	}
}

func (p *panicky) fix() {
	p.mu.Lock()
	p.fixed = true
	p.mu.Unlock()
	p.set("bug", "red")
}

func isBug(o *watchcodec.Object) bool {
	like, _ := o.Label("like")
	return string(like) == "bug"
}

func (p *panicky) Synced() bool {
	p.call("Synced")
	return p.paint.Synced()
}

func (p *panicky) Group(o *watchcodec.Object) string {
	if isBug(o) {
		p.call("Group")
	}
	return p.paint.Group(o)
}

func (p *panicky) Render(items []view.Item, depends func(string)) error {
	if isBug(items[0].Object) {
		depends("bug")
		p.call("Render")
	}
	return p.paint.Render(items, depends)
}

func (p *panicky) Subscribe(changed func(string)) func() {
	p.call("Subscribe")
	cancel := p.paint.Subscribe(changed)
	return func() { cancel(); p.call("cancel") }
}

// A Renderer that panics on a goroutine of a View hides the objects of the call, and the View
// continues. A panic of Subscribe is passed to the request's handler, and leaves no View behind.
func TestPanicOfARenderer(t *testing.T) {
	for method, hides := range map[string]bool{"Synced": false, "Group": true, "Render": true, "Subscribe": false, "cancel": false} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				renderer := &panicky{paint: newPaint(), in: method}
				renderer.set("sky", "blue")
				renderer.set("bug", "green")
				server := newServer(t, false)
				server.Set(thing("a", [3]string{"sky", "", "0"}))
				server.Set(thing("b", [3]string{"bug", "", "0"}))
				views, err := view.New(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return renderer }, Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				h := views.Filter(server)
				panicked := func() (v any) {
					defer func() { v = recover() }()
					got := do(t, h, "GET", collectionPath)
					switch {
					case method == "Synced":
						if got.Code != http.StatusTooManyRequests {
							t.Errorf("status %d: %s", got.Code, got.Body)
						}
					case hides:
						expect(t, got, "ThingList a: blue of 1")
					default:
						expect(t, got, "ThingList a: blue of 1 b: green of 1")
					}
					return nil
				}()
				if want := map[bool]any{true: "a bug of Subscribe"}[method == "Subscribe"]; panicked != want {
					t.Errorf("panic %v, want %v", panicked, want)
				}
				renderer.fix()
				server.Set(thing("b", [3]string{"bug", "", "1"}))
				time.Sleep(time.Second)
				expect(t, do(t, h, "GET", collectionPath), "ThingList a: blue of 1 b: red of 1")
				renderer.mu.Lock()
				renderer.fixed = method != "cancel"
				renderer.mu.Unlock()
				views.Close()
				if got := strings.Contains(log.String(), "a bug of "+method); got != (method != "Subscribe") {
					t.Errorf("logged: %q", log.String())
				}
			})
		})
	}
}

// keeper is a Renderer that returns a nil cancel.
type keeper struct{ *paint }

func (k keeper) Subscribe(changed func(string)) func() {
	k.paint.Subscribe(changed)
	return nil
}

// A nil cancel is not called.
func TestSubscriptionWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		renderer := keeper{newPaint()}
		renderer.set("sky", "blue")
		server := newServer(t, false)
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		views, err := view.New(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return renderer }, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, do(t, views.Filter(server), "GET", collectionPath), "ThingList a: blue of 1")
		views.Close()
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}
