package response_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// story notes what the hooks of one answer are told, in order.
type story []string

func (s *story) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s *story) hooks(name string) *response.Hooks {
	return &response.Hooks{
		Head: func(_ *http.Request, status int, _ http.Header) { s.add("%s head %d", name, status) },
		End: func(_ *http.Request, st response.Stats) {
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
		{"a body without a head", "GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
			"head 200, end 200 5 hijacked=false aborted=false"},
		{"a flush without a head", "GET", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
			"head 200, end 200 0 hijacked=false aborted=false"},
		{"interim answers are none", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(100)
			w.WriteHeader(404)
		}, "head 404, end 404 0 hijacked=false aborted=false"},
		{"a second head changes nothing", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
		}, "head 404, end 404 0 hijacked=false aborted=false"},
		{"HEAD has no bytes", "HEAD", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
			"head 200, end 200 0 hijacked=false aborted=false"},
		{"HEAD that becomes GET on its way", "HEAD", func(w http.ResponseWriter, r *http.Request) {
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
		{"an abort before the head", "GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
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
			told := make(chan string, 1)
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var s story
				defer func() { told <- strings.ReplaceAll(strings.Join(s, ", "), "x ", "") }()
				response.Serve(test.handler, w, r, s.hooks("x"))
			})))
			client.Send(test.method + " / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			client.Ended()
			if got := wiretest.Await(t, told, "end"); got != test.want {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}

// The innermost hook sees the head first, the outermost the end last.
func TestNestedHooks(t *testing.T) {
	var s story
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), w, r, s.hooks("inner"))
	})
	response.Serve(inner, httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), s.hooks("outer"))
	want := "inner head 204, outer head 204, inner end 204 0 hijacked=false aborted=false, outer end 204 0 hijacked=false aborted=false"
	if got := strings.Join(s, ", "); got != want {
		t.Errorf("told %q", got)
	}
}

// However deep filters stand in one another, and however often one calls the next, each has a
// writer of its own.
func TestDeeplyNestedHooks(t *testing.T) {
	var s story
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
	var want story
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
		t.Errorf("sent %q, told\n%s\nwant\n%s", w.Body, got, want)
	}
}

// Where the connection can't be had no hook is told of a 101.
func TestHijackRefused(t *testing.T) {
	var s story
	w := httptest.NewRecorder()
	response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("error %v", err)
		}
		w.WriteHeader(501)
	}), w, httptest.NewRequest("GET", "/", nil), s.hooks("x"))
	if got := strings.Join(s, ", "); got != "x head 501, x end 501 0 hijacked=false aborted=false" || w.Code != 501 {
		t.Errorf("told %q, answered %d", got, w.Code)
	}
}

// upper is a transform that holds the last byte back until it is flushed.
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

// A transform sees everything the handler writes by any way, is flushed with it
// and closed behind it; the bytes that count are those that it wrote.
func TestBody(t *testing.T) {
	leaktest.Check(t)
	seen, bytes := make(chan struct{}), make(chan int64, 1)
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("one"))
			_ = http.NewResponseController(w).Flush()
			wiretest.Await(t, seen, "the client's word")
			_, _ = io.WriteString(w, "two")
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("six")})
		}), w, r, &response.Hooks{
			Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
				h.Del("Content-Length")
				return &upper{w: w}
			},
			End: func(_ *http.Request, s response.Stats) { bytes <- s.Bytes },
		})
	})))
	client.Send("GET / HTTP/1.0\r\n\r\n")
	client.Head()
	client.Receive("ONE")
	close(seen)
	if got := client.Rest(); got != "TWOSIX" {
		t.Errorf("the client got %q", got)
	}
	if n := wiretest.Await(t, bytes, "end"); n != 9 {
		t.Errorf("%d bytes counted", n)
	}
}

// A missing tail must not look like a complete body.
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
	client.Head()
	if got := client.Ended(); !strings.Contains(got, "HELL") || strings.Contains(got, "0\r\n\r\n") {
		t.Errorf("the client got %q", got)
	}
}

// 204 and 304 have no body to transform.
func TestNoBody(t *testing.T) {
	for _, status := range []int{204, 304} {
		response.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
			httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), &response.Hooks{
				Body: func(_ *http.Request, status int, _ http.Header, _ io.Writer) io.WriteCloser {
					t.Errorf("asked for the body of a %d", status)
					return nil
				}})
	}
}

func BenchmarkServe(b *testing.B) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	r := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	hooks := &response.Hooks{Head: func(*http.Request, int, http.Header) {}, End: func(*http.Request, response.Stats) {}}
	b.ReportAllocs()
	for b.Loop() {
		response.Serve(next, w, r, hooks)
	}
}

// TestStatus: another status can be sent, with a content of its own, also where the handler
// writes nothing at all.
func TestStatus(t *testing.T) {
	leaktest.Check(t)
	for name, handler := range map[string]http.HandlerFunc{
		"a head":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"two heads":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(404) },
		"a body":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"only a flush": func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
	} {
		var told []int
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(handler, w, r, &response.Hooks{
				Status: func(_ *http.Request, status int, h http.Header) int {
					h.Set("Was", fmt.Sprint(status))
					return http.StatusBadGateway
				},
				Head: func(_ *http.Request, status int, _ http.Header) { told = append(told, status) },
			})
		}))
		answer, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if was := answer.Header.Get("Was"); answer.StatusCode != 502 || was != "200" && was != "404" || fmt.Sprint(told) != "[502]" {
			t.Errorf("%s: %d instead of %s, the head hook was told %v", name, answer.StatusCode, was, told)
		}
		s.Close()
	}
}
