package cachectl_test

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

// A page has been stuck in browsers since a deploy. Their next request of the session's status frees it, for a week.
func ExampleFreeStuck() {
	until := time.Now().Add(7 * 24 * time.Hour) // a date
	free, err := cachectl.FreeStuck(cachectl.Path("/session"), until)
	if err != nil {
		log.Fatal(err)
	}
	h := free(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, path := range []string{"/session", "/"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Printf("%s %q\n", path, w.Header().Get("Clear-Site-Data"))
	}
	// Output:
	// /session "\"cache\""
	// / ""
}

// The log names error pages that browsers would keep, before users notice.
func ExampleWarn() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "status" || a.Key == slog.LevelKey {
			return a
		}
		return slog.Attr{}
	}}))
	warn, err := cachectl.Warn(logger)
	if err != nil {
		log.Fatal(err)
	}
	gone := warn(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	for range 2 { // one line for the route
		gone.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/old", nil))
	}
	// Output: level=WARN status=410
}

// nginx's "expires 7d".
func ExampleParseExpires() {
	week, err := cachectl.ParseExpires("7d")
	if err != nil {
		log.Fatal(err)
	}
	h := http.Header{}
	week.Apply(h, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(h.Get("Cache-Control"), "/", h.Get("Expires"))
	// Output: max-age=604800 / Thu, 08 Jan 2026 00:00:00 GMT
}
