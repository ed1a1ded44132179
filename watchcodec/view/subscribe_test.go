package view_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// slowly is a Renderer whose Subscribe waits.
type slowly struct {
	*paint
	begun, proceed chan struct{}
}

func (s slowly) Subscribe(changed func(string)) func() {
	close(s.begun)
	<-s.proceed
	return s.paint.Subscribe(changed)
}

// TestSlowSubscribe: while Subscribe of one View waits, for state that it has to load for instance,
// other Views are served. The requests for that View wait.
func TestSlowSubscribe(t *testing.T) {
	leaktest.Check(t)
	server, p := aThing(t)
	slow := slowly{p, make(chan struct{}), make(chan struct{})}
	views, err := view.New(view.Options{SyncTimeout: time.Minute, Renderer: func(r *http.Request, _ watchcodec.Request) view.Renderer {
		if r.Header.Get("Authorization") == "slow" {
			return slow
		}
		return p
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer views.Close()
	h := views.Filter(server)
	list := func(caller string) <-chan *httptest.ResponseRecorder {
		done := make(chan *httptest.ResponseRecorder, 1)
		go func() { done <- do(t, h, "GET", collectionPath, "Authorization", caller) }()
		return done
	}
	first := list("slow")
	<-slow.begun
	second := list("slow")
	select {
	case got := <-list("other"):
		expect(t, got, "ThingList a: blue of 1")
	case <-time.After(30 * time.Second):
		t.Error("another View is not served")
	}
	close(slow.proceed)
	expect(t, <-first, "ThingList a: blue of 1")
	expect(t, <-second, "ThingList a: blue of 1")
}
