package filters_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func TestResponseLimitKeepsWhatProxyingNeeds(t *testing.T) {
	filtertest.Test(t, good(t)(filters.ResponseLimit(1<<30)), filtertest.TransformsBody())
	bad(t, "filters: ResponseLimit is negative")(filters.ResponseLimit(-1))
}

// sized returns a handler that responds with n bytes, with a Content-Length if known, in small pieces.
func sized(n int, known bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Set-Cookie", "a=b")
		if known {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		}
		if !known { // else net/http's server sets the length of short content
			_ = http.NewResponseController(w).Flush()
		}
		for range n { // errors of writes are ignored
			_, _ = io.WriteString(w, "a")
		}
		if r.Method == "POST" {
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		}
	}
}

// A response within the limit is not changed, whether or not its length is known; a larger one is a 502, or aborted.
func TestResponseLimit(t *testing.T) {
	leaktest.Check(t)
	recorded := make(chan error, 1)
	record := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, result := filters.WithResult(r.Context())
			defer func() { recorded <- result.Err }()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	limit := good(t)(filters.ResponseLimit(10))
	for name, test := range map[string]struct {
		method string
		n      int
		known  bool
		want   string // of the response, behind the status line
		kind   culvert.ErrorKind
	}{
		"known":            {"GET", 10, true, "aaaaaaaaaa", 0},
		"unknown":          {"GET", 10, false, "aaaaaaaaaa", 0},
		"known, larger":    {"GET", 11, true, "Bad Gateway\n", culvert.HeaderInvalid},
		"HEAD":             {"HEAD", 11, true, "", 0},
		"trailers, larger": {"POST", 11, true, "Bad Gateway\n", culvert.HeaderInvalid},
		"much larger":      {"GET", 1 << 20, true, "Bad Gateway\n", culvert.HeaderInvalid},
		"unknown, larger":  {"GET", 11, false, "", culvert.Internal},
		"unknown, endless": {"GET", 1 << 20, false, "", culvert.Internal},
	} {
		origin := wiretest.Serve(t, sized(test.n, test.known))
		for where, inner := range map[string]http.Handler{"a handler": sized(test.n, test.known), "a proxy": forwardTo(t, origin)} {
			t.Run(name+" of "+where, func(t *testing.T) {
				addr := wiretest.Serve(t, filters.NewChain(filters.Recover(slog.New(slog.DiscardHandler)), record, limit).Then(inner))
				client := wiretest.Dial(t, addr)
				client.Send(test.method + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
				if test.kind == culvert.Internal {
					header, content, _ := strings.Cut(client.Ended(), "\r\n\r\n")
					if !strings.HasPrefix(header, "HTTP/1.1 200") || strings.HasSuffix(content, "0\r\n\r\n") || strings.Count(content, "a") > 10 {
						t.Errorf("%q and %q", header, content)
					}
				} else if resp, body := client.Response(test.method); body != test.want {
					t.Errorf("%d, %q", resp.StatusCode, body)
				} else if failed := test.kind != 0; failed != (resp.StatusCode == 502) || failed != (resp.Header["Set-Cookie"] == nil) || failed && (resp.Header["Cache-Control"] != nil || len(resp.Trailer) > 0) {
					t.Errorf("%d, %v, trailers %v", resp.StatusCode, resp.Header, resp.Trailer)
				}
				e, err := (*culvert.Error)(nil), wiretest.Await(t, recorded, "result")
				if test.kind == 0 && err != nil || test.kind != 0 && (!errors.As(err, &e) || e.Kind != test.kind) {
					t.Errorf("the result has %v", err)
				}
			})
		}
	}
}

// Over HTTP/2 the stream of a response that is too large is reset.
func TestResponseLimitOverHTTP2(t *testing.T) {
	leaktest.Check(t)
	limit := good(t)(filters.ResponseLimit(10))
	frames := wiretest.NewFrames(t, limit(sized(1<<20, false)))
	frames.Post(true)
	if s := frames.Status(); s == "200" {
		s = frames.Status()
		if s != "internal_error" {
			t.Errorf("the stream ends with %s", s)
		}
	} else if s != "internal_error" {
		t.Errorf("the response is %s", s)
	}
}

// The bytes of a tunnel are not content.
func TestResponseLimitOfUpgrades(t *testing.T) {
	leaktest.Check(t)
	limit := good(t)(filters.ResponseLimit(0))
	client := wiretest.Dial(t, wiretest.Serve(t, limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\nbytes")
	}))))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n")
	client.Header()
	client.Receive("bytes")
}

// What an outer handler has set is its own, and not the response's: a CORS field, for instance.
func TestResponseLimitKeepsOuterFields(t *testing.T) {
	f := good(t)(filters.ResponseLimit(1))
	w := httptest.NewRecorder()
	w.Header().Set("Vary", "Origin")
	w.Header().Set("Access-Control-Allow-Origin", "https://a.test")
	f(respond("too long", "Content-Length", "8", "Vary", "Cookie", "Access-Control-Allow-Origin", "*", "Set-Cookie", "a=b")).ServeHTTP(w, get())
	want := http.Header{"Vary": {"Origin"}, "Access-Control-Allow-Origin": {"https://a.test"}, "Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}
	if w.Code != 502 || !reflect.DeepEqual(w.Header(), want) {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
}

// A 304 has the length of the content that it does not have, and a failure that was recorded before remains the exchange's.
func TestResponseLimitOfOtherResponses(t *testing.T) {
	f := good(t)(filters.ResponseLimit(1))
	for _, code := range []int{304, 204} {
		resp, _ := through(f, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(code)
		}, get())
		if resp.StatusCode != code {
			t.Errorf("%d is a %d", code, resp.StatusCode)
		}
	}
	before := errors.New("before")
	ctx, result := filters.WithResult(t.Context())
	resp, _ := through(f, func(w http.ResponseWriter, r *http.Request) {
		filters.ResultFrom(r.Context()).Err = before
		respond("too long", "Content-Length", "8")(w, r)
	}, get().WithContext(ctx))
	if resp.StatusCode != 502 || result.Err != before {
		t.Errorf("%d, %v", resp.StatusCode, result.Err)
	}
}
