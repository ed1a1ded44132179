package filters_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A gRPC client is refused by a grpc-status in a header section that ends the stream. With anything else it reports that the
// stream is broken. A filter around, which changes responses, makes no difference.
func TestRefusalsOfGRPC(t *testing.T) {
	leaktest.Check(t)
	auth := func(code int, fields ...string) culvert.Filter {
		return good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(code, fields...), Redirects: true}))
	}
	around := filters.NewChain(filters.AccessLog(slog.New(slog.DiscardHandler)), filters.ErrorPages(func(int) http.Handler { return respond("a page") }),
		good(t)(filters.Compress(filters.CompressOptions{})))
	for name, test := range map[string]struct {
		filter  culvert.Filter
		code    string
		message string
	}{
		"BodyLimit":                  {good(t)(filters.BodyLimit(1)), "8", "Request Entity Too Large"},
		"Concurrency":                {full(good(t)(filters.Concurrency(filters.ConcurrencyOptions{Max: 1}))), "14", "Service Unavailable"},
		"Timeout":                    {good(t)(filters.Timeout(time.Millisecond)), "4", "Gateway Timeout"},
		"Recover":                    {filters.Recover(slog.New(slog.DiscardHandler)), "13", "Internal Server Error"},
		"ForwardAuth":                {auth(401), "16", "Unauthorized"},
		"ForwardAuth, not permitted": {auth(403), "7", "Forbidden"},
		"ForwardAuth, login":         {auth(302, "Location", "/login"), "16", "Unauthorized"},
		"ForwardAuth, failure":       {auth(500), "14", "Bad Gateway"},
		"ResponseLimit":              {good(t)(filters.ResponseLimit(1)), "14", "Bad Gateway"},
		"RateLimit":                  {drained(good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Per: time.Hour}))), "8", "Too Many Requests"},
		"AddressList":                {good(t)(filters.AddressList(filters.AddressListOptions{Rules: []filters.AddressRule{{Networks: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}}})), "7", "Forbidden"},
		"BasicAuth":                  {good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: map[string]string{"a": "b"}})), "16", "Unauthorized"},
		"RefuseAmbiguous":            {filters.RefuseAmbiguous(filters.UnderscoreNames), "13", "Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			frames := wiretest.NewFrames(t, around.Append(test.filter).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
				switch name {
				case "Recover":
					panic("a bug")
				case "ResponseLimit":
					w.Header().Set("Content-Length", "2")
					w.Header().Set("Trailer", "X-Sum")
					_, _ = io.WriteString(w, "ab")
					return
				}
				<-r.Context().Done()
			}))
			frames.Post(false, "content-type", "application/grpc+proto", "te", "trailers", "a_b", "1", "content-length", "100", "accept-encoding", "gzip")
			h, end := frames.Response()
			if !end || h.Get(":status") != "200" || h.Get("Content-Type") != "application/grpc" || h.Get("Grpc-Status") != test.code || h.Get("Grpc-Message") != test.message {
				t.Errorf("end %v, header %v", end, h)
			}
		})
	}
}

// drained returns f after a request, whose token was the last one.
func drained(f culvert.Filter) culvert.Filter {
	return func(next http.Handler) http.Handler {
		f(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), from("127.0.0.1:1"))
		return f(next)
	}
}

// All other clients have the status, and so has a WebSocket with that Content-Type over HTTP/1.
func TestRefusalsOfOthers(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(403)}))
	frames := wiretest.NewFrames(t, f(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("passed") })))
	frames.Post(true, "content-type", "application/grpcs")
	if h, _ := frames.Response(); h.Get(":status") != "403" || h["Grpc-Status"] != nil {
		t.Errorf("header %v", h)
	}
	client := wiretest.Dial(t, wiretest.Serve(t, f(http.NotFoundHandler())))
	_, _ = io.WriteString(client, "")
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web\r\nContent-Length: 0\r\n\r\n")
	resp, body := client.Response("POST")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/grpc-web" || resp.Header.Get("Grpc-Status") != "7" || body != "" {
		t.Errorf("gRPC-Web: %d, %v, %q", resp.StatusCode, resp.Header, body)
	}
}
