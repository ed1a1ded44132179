package response_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// calls records the calls of the hooks of one response, in order.
type calls []string

func (s *calls) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s *calls) hooks(name string) *response.Hooks {
	return &response.Hooks{
		Header: func(_ *http.Request, status int, _ http.Header) { s.add("%s head %d", name, status) },
		End: func(_ *http.Request, st culvert.ResponseStats) {
			s.add("%s end %d %d hijacked=%v aborted=%v", name, st.Status, st.Bytes, st.Hijacked, st.Aborted)
		},
	}
}

func TestHooks(t *testing.T) {
	leaktest.Check(t)
	tests := []struct {
		name, method string
		handler      http.HandlerFunc
		want         string
	}{
		{"nothing written", "GET", func(http.ResponseWriter, *http.Request) {},
			"head 200, end 200 0 hijacked=false aborted=false"},
		{"a body without a header", "GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
			"head 200, end 200 5 hijacked=false aborted=false"},
		{"a flush without a header", "GET", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
			"head 200, end 200 0 hijacked=false aborted=false"},
		{"interim responses are not final", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(100)
			w.WriteHeader(404)
		}, "head 404, end 404 0 hijacked=false aborted=false"},
		{"a second header changes nothing", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
		}, "head 404, end 404 0 hijacked=false aborted=false"},
		{"HEAD has no bytes", "HEAD", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
			"head 200, end 200 0 hijacked=false aborted=false"},
		{"HEAD that the handler turns into GET", "HEAD", func(w http.ResponseWriter, r *http.Request) {
			r.Method = "GET"
			_, _ = w.Write([]byte("hello"))
		}, "head 200, end 200 0 hijacked=false aborted=false"},
		{"a file", "GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("hello")})
		}, "head 200, end 200 5 hijacked=false aborted=false"},
		{"an abort", "GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}, "head 200, end 200 4 hijacked=false aborted=true"},
		{"an abort before the header", "GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"end 0 0 hijacked=false aborted=true"},
		{"a hijack", "GET", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}, "head 101, end 101 0 hijacked=true aborted=false"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			called := make(chan string, 1)
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var s calls
				defer func() { called <- strings.ReplaceAll(strings.Join(s, ", "), "x ", "") }()
				response.Serve(test.handler, w, r, s.hooks("x"))
			})))
			client.Send(test.method + " / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			client.Ended()
			if got := wiretest.Await(t, called, "end"); got != test.want {
				t.Errorf("called %q, want %q", got, test.want)
			}
		})
	}
}

// The innermost Header hook is called first, the outermost End hook last.
func TestNestedHooks(t *testing.T) {
	var s calls
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), w, r, s.hooks("inner"))
	})
	response.Serve(inner, httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), s.hooks("outer"))
	want := "inner head 204, outer head 204, inner end 204 0 hijacked=false aborted=false, outer end 204 0 hijacked=false aborted=false"
	if got := strings.Join(s, ", "); got != want {
		t.Errorf("called %q", got)
	}
}

// Each filter has a writer of its own, however deep filters are nested and however often one calls the
// next.
func TestDeeplyNestedHooks(t *testing.T) {
	var s calls
	h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	for _, name := range []string{"6", "5", "4", "3", "2", "1"} {
		next := h
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { response.Serve(next, w, r, s.hooks(name)) })
	}
	twice := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		h.ServeHTTP(w, r)
	})
	w := httptest.NewRecorder()
	response.Serve(twice, w, httptest.NewRequest("GET", "/", nil), s.hooks("0"))
	var want calls
	for round := range 2 {
		for name := 6; name >= 1; name-- {
			want.add("%d head 200", name)
		}
		if round == 0 {
			want.add("0 head 200")
		}
		for name := 6; name >= 1; name-- {
			want.add("%d end 200 5 hijacked=false aborted=false", name)
		}
	}
	want.add("0 end 200 10 hijacked=false aborted=false")
	if got, want := strings.Join(s, "\n"), strings.Join(want, "\n"); got != want || w.Body.String() != "hellohello" {
		t.Errorf("sent %q, called\n%s\nwant\n%s", w.Body, got, want)
	}
}

// No hook is called with a 101 if the connection can't be hijacked.
func TestHijackRefused(t *testing.T) {
	var s calls
	w := httptest.NewRecorder()
	response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("error %v", err)
		}
		w.WriteHeader(501)
	}), w, httptest.NewRequest("GET", "/", nil), s.hooks("x"))
	if got := strings.Join(s, ", "); got != "x head 501, x end 501 0 hijacked=false aborted=false" || w.Code != 501 {
		t.Errorf("called %q, status %d", got, w.Code)
	}
}

// upper is a transform that writes upper case, and holds the last byte back until it is flushed.
type upper struct {
	w      io.Writer
	held   []byte
	closed error
}

func (u *upper) Write(p []byte) (int, error) {
	u.held = append(u.held, p...)
	_, err := io.WriteString(u.w, strings.ToUpper(string(u.held[:len(u.held)-1])))
	u.held = u.held[len(u.held)-1:]
	return len(p), err
}

func (u *upper) Flush() error {
	_, err := io.WriteString(u.w, strings.ToUpper(string(u.held)))
	u.held = nil
	return err
}

func (u *upper) Close() error { return errors.Join(u.Flush(), u.closed) }

// A transform receives what the handler writes by any method. It is flushed when the handler flushes,
// and closed after it. Stats.Bytes counts what the transform writes.
func TestBody(t *testing.T) {
	leaktest.Check(t)
	seen, bytes := make(chan struct{}), make(chan int64, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("one"))
			_ = http.NewResponseController(w).Flush()
			wiretest.Await(t, seen, "the client's receipt")
			_, _ = io.WriteString(w, "two")
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("six")})
		}), w, r, &response.Hooks{
			Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
				h.Del("Content-Length")
				return &upper{w: w}
			},
			End: func(_ *http.Request, s culvert.ResponseStats) { bytes <- s.Bytes },
		})
	})))
	client.Send("GET / HTTP/1.0\r\n\r\n")
	client.Header()
	client.Receive("ONE")
	close(seen)
	if got := client.Rest(); got != "TWOSIX" {
		t.Errorf("the client received %q", got)
	}
	if n := wiretest.Await(t, bytes, "end"); n != 9 {
		t.Errorf("%d bytes counted", n)
	}
}

// A body without its end must not look complete.
func TestBodyThatCannotBeClosed(t *testing.T) {
	leaktest.Check(t)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello")
			_ = http.NewResponseController(w).Flush()
		}), w, r, &response.Hooks{Body: func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
			return &upper{w: w, closed: io.ErrClosedPipe}
		}})
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Header()
	if got := client.Ended(); !strings.Contains(got, "HELL") || strings.Contains(got, "0\r\n\r\n") {
		t.Errorf("the client received %q", got)
	}
}

// The Body hook is not called for a 204 or 304.
func TestNoBody(t *testing.T) {
	for _, status := range []int{204, 304} {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
			httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), &response.Hooks{
				Body: func(_ *http.Request, status int, _ http.Header, _ io.Writer) io.WriteCloser {
					t.Errorf("Body was called for a %d", status)
					return nil
				}})
	}
}

func BenchmarkServe(b *testing.B) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	r := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	hooks := &response.Hooks{Header: func(*http.Request, int, http.Header) {}, End: func(*http.Request, culvert.ResponseStats) {}}
	b.ReportAllocs()
	for b.Loop() {
		response.Serve(next, w, r, hooks)
	}
}

// TestStatus: the Status hook replaces the status, also where the handler writes nothing at all.
func TestStatus(t *testing.T) {
	leaktest.Check(t)
	for name, handler := range map[string]http.HandlerFunc{
		"a header":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"two headers":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(404) },
		"a body":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"only a flush": func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
	} {
		var statuses []int
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(handler, w, r, &response.Hooks{
				Status: func(_ *http.Request, status int, h http.Header) int {
					h.Set("Was", fmt.Sprint(status))
					return http.StatusBadGateway
				},
				Header: func(_ *http.Request, status int, _ http.Header) { statuses = append(statuses, status) },
			})
		}))
		resp, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if was := resp.Header.Get("Was"); resp.StatusCode != 502 || was != "200" && was != "404" || fmt.Sprint(statuses) != "[502]" {
			t.Errorf("%s: %d instead of %s, Head was called with %v", name, resp.StatusCode, was, statuses)
		}
		s.Close()
	}
}
