package response_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// doubled is a transform that writes the content twice, and a full stop at the end.
type doubled struct{ w io.Writer }

func (d doubled) Write(p []byte) (int, error) {
	_, err := io.WriteString(d.w, string(p)+string(p))
	return len(p), err
}

func (d doubled) Close() error {
	_, err := io.WriteString(d.w, ".")
	return err
}

// looksWhole reports whether a response looks complete to its client. Over HTTP/1.0 the full stop at the end shows it.
func looksWhole(t *testing.T, s *httptest.Server, protocol, method string) bool {
	if protocol == "HTTP/1.0" {
		client := wiretest.Dial(t, s.Listener.Addr().String())
		client.Send(method + " / HTTP/1.0\r\n\r\n")
		received := client.Ended()
		return strings.HasSuffix(received, ".") || method == "HEAD" && strings.HasSuffix(received, "\r\n\r\n")
	}
	r, err := http.NewRequest(method, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err == nil
}

// net/http's server aborts the response of a handler that has written less than its Content-Length. So does Serve where a
// hook has deleted that field, since the response would look complete.
func TestShorterThanItsContentLength(t *testing.T) {
	for name, test := range map[string]struct {
		length, sent string
		flush        bool
		whole        bool
	}{
		"all":                         {"4", "abcd", false, true},
		"all, flushed":                {"4", "abcd", true, true},
		"nothing announced":           {"", "abc", true, true},
		"what is no number":           {"4x", "abc", false, true},
		"none announced":              {"0", "", false, true},
		"less":                        {"4", "abc", false, false},
		"less, flushed":               {"4", "abc", true, false},
		"nothing":                     {"4", "", false, false},
		"nothing but the header":      {"4", "", true, false},
		"less than a buffer, flushed": {"100000", strings.Repeat("a", 10000), true, false},
	} {
		for _, protocol := range []string{"HTTP/1.0", "HTTP/1.1", "HTTP/2"} {
			for _, method := range []string{"GET", "HEAD"} {
				t.Run(name+", "+protocol+", "+method, func(t *testing.T) {
					failed := make(chan error, 1)
					hooks := &response.Hooks{
						Status: func(_ *http.Request, status int, h http.Header) int {
							h.Del("Content-Length")
							return status
						},
						Body: func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser { return doubled{w} },
					}
					handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if test.length != "" {
							w.Header().Set("Content-Length", test.length)
						}
						_, _ = io.WriteString(w, test.sent)
						if test.flush {
							_ = http.NewResponseController(w).Flush()
						}
					})
					s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						ctx, record := record.WithNew(r.Context())
						defer func() { failed <- record.Err }()
						response.Serve(handler, w, r.WithContext(ctx), hooks)
					}))
					s.Config.ErrorLog = wiretest.Quiet()
					if s.EnableHTTP2 = protocol == "HTTP/2"; s.EnableHTTP2 {
						s.StartTLS()
					} else {
						s.Start()
					}
					defer s.Close()
					whole := looksWhole(t, s, protocol, method)
					err := <-failed
					if method == "HEAD" {
						if !whole || err != nil {
							t.Errorf("whole %v, %v", whole, err)
						}
						return
					}
					if whole != test.whole {
						t.Errorf("whole %v, want %v", whole, test.whole)
					}
					e := (*culvert.Error)(nil)
					if (err == nil) != test.whole || err != nil && (!errors.As(err, &e) || e.Kind != culvert.Internal) {
						t.Errorf("the failure is %v", err)
					}
				})
			}
		}
	}
}

// unflushable is a writer whose client has left, as a flush finds out.
type unflushable struct{ *httptest.ResponseRecorder }

var errLeft = errors.New("the client has left")

func (unflushable) FlushError() error { return errLeft }

// A handler that returns since its client has left is not to blame for what it has not written, though a flush alone has told it so.
func TestShortSinceAFlushHasFailed(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "ab")
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, errLeft) {
			t.Errorf("the flush ends with %v", err)
		}
	})
	hooks := &response.Hooks{Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
		h.Del("Content-Length")
		return doubled{w}
	}}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	ctx, record := record.WithNew(r.Context())
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("the handler panics with %v", v)
			}
		}()
		response.Serve(handler, unflushable{httptest.NewRecorder()}, r.WithContext(ctx), hooks)
	}()
	if e := (*culvert.Error)(nil); !errors.As(record.Err, &e) || e.Kind != culvert.ClientGone || !errors.Is(e, errLeft) {
		t.Errorf("the failure is %v", record.Err)
	}
}

// failing is a transform that loses a piece, by an error that says so, and knows nothing of it at its end.
type failing struct {
	io.Writer
	write, flush bool
}

func (f failing) Write(p []byte) (int, error) {
	if f.write {
		return 0, errors.New("lost")
	}
	return f.Writer.Write(p)
}

func (f failing) Flush() error {
	if f.flush {
		return errors.New("lost")
	}
	return nil
}

func (f failing) Close() error { return nil }

// Handlers ignore the errors of writes, fmt.Fprint's for instance. What a transform has lost all the same aborts the response.
func TestIgnoredErrorOfATransform(t *testing.T) {
	for name, test := range map[string]struct {
		transform failing
		whole     bool
	}{
		"none":  {failing{}, true},
		"write": {failing{write: true}, false},
		"flush": {failing{flush: true}, false},
	} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				failed := make(chan error, 1)
				handler := func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, "content")
					w.(http.Flusher).Flush()
				}
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, record := record.WithNew(r.Context())
					defer func() { failed <- record.Err }()
					response.Serve(http.HandlerFunc(handler), w, r.WithContext(ctx), &response.Hooks{
						Body: func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
							test.transform.Writer = w
							return test.transform
						}})
				}))
				s.Config.ErrorLog = wiretest.Quiet()
				if s.EnableHTTP2 = protocol == "HTTP/2"; s.EnableHTTP2 {
					s.StartTLS()
				} else {
					s.Start()
				}
				defer s.Close()
				if whole := looksWhole(t, s, protocol, "GET"); whole != test.whole {
					t.Errorf("the response looks whole: %v, want %v", whole, test.whole)
				}
				var e *culvert.Error
				if err := <-failed; test.whole && err != nil || !test.whole && !(errors.As(err, &e) && e.Kind == culvert.Internal) {
					t.Errorf("recorded: %v", err)
				}
			})
		}
	}
}
