package canary_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/examples/recipes/canary"
)

func version(t *testing.T, name string) (addr string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestShares(t *testing.T) {
	g, err := canary.New(version(t, "current"), version(t, "next"))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	get := func(set func(*http.Request)) *http.Response {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		set(r)
		g.ServeHTTP(w, r)
		return w.Result()
	}
	body := func(resp *http.Response) string {
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	anyClient := func(*http.Request) {}
	for _, percent := range []int{0, 5, 50, 100, 0} {
		if err := g.Share(percent); err != nil {
			t.Fatal(err)
		}
		next := 0
		for range 100 {
			if body(get(anyClient)) == "next" {
				next++
			}
		}
		if next != percent {
			t.Errorf("%d of 100 sessions for a share of %d percent", next, percent)
		}
		if got := body(get(func(r *http.Request) { r.Header.Set("X-Canary", "next") })); got != "next" {
			t.Errorf("a tester got %q", got)
		}
	}

	if err := g.Share(50); err != nil {
		t.Fatal(err)
	}
	first := get(anyClient)
	session := func(r *http.Request) {
		for _, cookie := range first.Cookies() {
			r.AddCookie(cookie)
		}
	}
	want := body(first)
	for range 10 {
		if got := body(get(session)); got != want {
			t.Errorf("a session of %s got %s", want, got)
		}
	}
}
