package filters_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert"
)

// good returns a function that fails the test if a filter's constructor returns an error.
func good(t testing.TB) func(culvert.Filter, error) culvert.Filter {
	return func(f culvert.Filter, err error) culvert.Filter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// bad returns a function that checks the error of a constructor.
func bad(t testing.TB, want string) func(culvert.Filter, error) {
	return func(f culvert.Filter, err error) {
		t.Helper()
		if f != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// through serves one request through a filter and returns the response and its body.
func through(f culvert.Filter, h http.HandlerFunc, r *http.Request) (*http.Response, string) {
	w := httptest.NewRecorder()
	f(h).ServeHTTP(w, r)
	resp := w.Result()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

func get(fields ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// respond returns a handler that responds with header fields and a content.
func respond(text string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(fields); i += 2 {
			w.Header().Add(fields[i], fields[i+1])
		}
		_, _ = io.WriteString(w, text)
	}
}
