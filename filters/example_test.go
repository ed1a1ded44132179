package filters_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// Uploads of more than a megabyte are refused, at once if their length says so.
func ExampleBodyLimit() {
	limit, err := filters.BodyLimit(1 << 20)
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(limit).ThenFunc(func(http.ResponseWriter, *http.Request) {})
	for _, size := range []int64{1 << 20, 1<<20 + 1} {
		r := httptest.NewRequest("POST", "/", io.LimitReader(zeros{}, size))
		r.ContentLength = size
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(size, w.Code)
	}
	// Output:
	// 1048576 200
	// 1048577 413
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The access log of nginx, which existing tools read.
func ExampleCombinedLog() {
	var lines bytes.Buffer // a file, opened with os.O_APPEND
	h := filters.NewChain(filters.CombinedLog(&lines)).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	})
	r := httptest.NewRequest("GET", "/a?b=c", nil)
	r.Header.Set("User-Agent", `curl/8 "forged"`)
	h.ServeHTTP(httptest.NewRecorder(), r)
	fmt.Print(regexp.MustCompile(`\[.*?\]`).ReplaceAllString(lines.String(), "[time]"))
	// Output: 192.0.2.1 - - [time] "GET /a?b=c HTTP/1.1" 200 5 "-" "curl/8 \x22forged\x22"
}

// Pages are compressed; what must not reveal its length is not.
func ExampleCompress() {
	compress, err := filters.Compress(filters.CompressOptions{
		When: func(r *http.Request, _ int, _ http.Header) bool { return r.URL.Path != "/account" },
	})
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(compress).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, strings.Repeat("a long page ", 1000))
	})
	for _, path := range []string{"/", "/account"} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", "gzip, zstd")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%q %v\n", w.Header().Get("Content-Encoding"), w.Body.Len() < 1000)
	}
	// Output:
	// "zstd" true
	// "" false
}

// At most 100 requests and tunnels at a time; 50 more wait, for two seconds each.
func ExampleConcurrency() {
	bound, err := filters.Concurrency(filters.ConcurrencyOptions{Max: 100, Queue: 50, QueueTimeout: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/reports/", filters.NewChain(bound).ThenFunc(func(http.ResponseWriter, *http.Request) { /* slow */ }))
}

// A filter that looks at bodies is put inside of Decompress, so that it need not know gzip.
func ExampleDecompress() {
	decompress, err := filters.Decompress(filters.DecompressOptions{Requests: true, MaxRequest: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(decompress).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Printf("%s, %q, %v\n", body, r.Header.Get("Content-Encoding"), err)
	})
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	_, _ = io.WriteString(zip, "hello")
	zip.Close()
	r := httptest.NewRequest("POST", "/", &body)
	r.Header.Set("Content-Encoding", "gzip")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: hello, "", <nil>
}

// In front of an application that speaks CGI or WSGI, X_User can't forge X-User.
func ExampleDropUnderscoreNames() {
	h := filters.NewChain(filters.DropUnderscoreNames()).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header)
	})
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["X_User"] = []string{"root"}
	r.Header.Set("X-Request-Id", "7")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: map[X-Request-Id:[7]]
}

// Errors of the targets and of the gateway have pages of its own; statuses are kept.
func ExampleErrorPages() {
	pages := filters.ErrorPages(func(status int) http.Handler {
		if status < 500 {
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<h1>We will be back soon</h1>")
		})
	})
	h := filters.NewChain(pages).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "goroutine 1 [running]", http.StatusBadGateway)
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"), w.Body)
	// Output: 502 text/html; charset=utf-8 <h1>We will be back soon</h1>
}

// Fields that browsers heed for pages, and none that names the software of a target.
func ExampleHeaders() {
	secure, err := filters.Headers(
		filters.HeaderRule{
			Remove: []string{"Server", "X-Powered-By"},
			Set:    http.Header{"Strict-Transport-Security": {"max-age=31536000"}, "X-Content-Type-Options": {"nosniff"}},
		},
		filters.HeaderRule{
			ContentTypes: []string{"text/html"},
			Set:          http.Header{"Content-Security-Policy": {"frame-ancestors 'none'"}},
		},
	)
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(secure).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "app/1.0")
		w.Header().Set("Content-Type", "application/json")
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, name := range []string{"Server", "X-Content-Type-Options", "Content-Security-Policy"} {
		fmt.Printf("%q ", w.Header().Get(name))
	}
	// Output: "" "nosniff" ""
}

// One request in a hundred is sent to the next version, too. Clients get the responses of the current one.
func ExampleMirror() {
	current, next := http.NotFoundHandler(), http.NotFoundHandler() // two proxies
	mirror, err := filters.NewMirror(filters.MirrorOptions{To: next, Share: 0.01, Timeout: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/search", filters.NewChain(mirror.Filter).Then(current))
	// At the end of the program:
	if err := mirror.Close(context.Background()); err != nil {
		log.Print(err)
	}
}

// counts is a Metrics; adapters for Prometheus and OpenTelemetry are in examples/metrics.
type counts struct{}

func (counts) RequestStarted(*http.Request) {}

func (counts) RequestEnded(r *http.Request, o filters.Observation) {
	fmt.Println(r.URL.Path, o.Status, o.Bytes, "attempts:", len(o.Result.Attempts))
}

// A Metrics is called for each request, with the attempts of the proxy inside.
func ExampleObserve() {
	h := filters.NewChain(filters.Observe(counts{})).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/a", nil))
	// Output: /a 200 5 attempts: 0
}

// Behind a load balancer in 10.0.0.0/8 the client is the address that the balancer has added. What the client itself has
// written there does not count.
func ExampleRealIP() {
	realIP, err := filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(realIP).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(filters.ClientAddr(r))
	})
	for _, peer := range []string{"10.0.0.7:1234", "203.0.113.9:1234"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "127.0.0.1, 198.51.100.4")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// 198.51.100.4
	// 203.0.113.9
}

// A panic of a handler is a 500 and a line in the log.
func ExampleRecover() {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	h := filters.NewChain(filters.Recover(logger)).ThenFunc(func(http.ResponseWriter, *http.Request) {
		panic("a fault")
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code)
	// Output: 500
}

// In front of an authorisation by path: "/public/%2e%2e/admin" may be /admin for the target.
func ExampleRefuseAmbiguous() {
	strict := filters.RefuseAmbiguous(filters.EncodedSlash | filters.Backslash | filters.DotSegments | filters.EmptySegments)
	h := filters.NewChain(strict).ThenFunc(func(http.ResponseWriter, *http.Request) {})
	for _, path := range []string{"/public/a", "/public/%2e%2e/admin", "/public%2Fadmin"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /public/a 200
	// /public/%2e%2e/admin 400
	// /public%2Fadmin 400
}

// The client, the target and the log have the same id of a request.
func ExampleRequestID() {
	requestID, err := filters.RequestID(filters.RequestIDOptions{New: func() string { return "example" }})
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(requestID).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("target:", r.Header.Get("X-Request-Id"), "log:", filters.RequestIDFrom(r.Context()))
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println("client:", w.Header().Get("X-Request-Id"))
	// Output:
	// target: example log: example
	// client: example
}

// A response must begin within a time, and may then take any.
func ExampleTimeout() {
	timeout, err := filters.Timeout(20 * time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(timeout).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		fmt.Println(errors.Is(context.Cause(r.Context()), context.DeadlineExceeded))
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code)
	// Output:
	// true
	// 504
}

// Logs go to the standard output in JSON.
func ExampleAccessLog_json() {
	h := filters.NewChain(filters.AccessLog(slog.New(slog.NewJSONHandler(os.Stdout, nil)))).Then(http.NotFoundHandler())
	http.Handle("/", h)
}
